"""Dates and times as text that says all there is to them: also the zone by its key, its name, and ``fold``.

``2024-10-27T02:30:00+01:00[Europe/Berlin] fold=1`` is a time by the rules of a zone (in the way of RFC 9557), and
``2024-10-27T02:30:00+02:00(CEST)`` one by a fixed offset with a name. A zone is looked up by its key alone, in this
machine's own tables.
"""

import re
import sys
from importlib import import_module
from typing import Any

from rewind.sdk.values.objects import CannotBuild, class_name

_FORM = re.compile(r"(?P<iso>[^\[( ]+)(?:\[(?P<key>[^\]]+)\]|\((?P<name>.*)\))?(?P<fold> fold=1)?", re.DOTALL)


def moment_text(value: Any) -> str:
    """A ``datetime`` or ``time``. Raises CannotBuild for a zone that has no key."""
    return f"{value.isoformat()}{_zone(value.tzinfo)}{' fold=1' if value.fold else ''}"


def moment(kind: str, text: str) -> Any:
    """The ``datetime`` or ``time`` again. Raises CannotBuild where the zone's rules have changed since."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise CannotBuild(f"datetime.{kind} that cannot be read")
    datetime = import_module("datetime")
    value = getattr(datetime, kind).fromisoformat(found["iso"])
    offset = value.utcoffset()
    if found["name"] is not None:
        value = value.replace(tzinfo=datetime.timezone(offset, found["name"]))
    if found["fold"]:
        value = value.replace(fold=1)
    if found["key"] is not None:
        value = value.replace(tzinfo=import_module("zoneinfo").ZoneInfo(found["key"]))
        if value.utcoffset() != offset:
            raise CannotBuild(f"datetime.{kind} of {found['key']}, whose rules are others here")
    return value


def _zone(tzinfo: Any) -> str:
    kind = type(tzinfo)
    if tzinfo is None:
        return ""
    if kind is sys.modules["datetime"].timezone:
        named = tzinfo.__getinitargs__()[1:]
        return f"({named[0]})" if named else ""
    if kind is getattr(sys.modules.get("zoneinfo"), "ZoneInfo", None) and tzinfo.key is not None:
        return f"[{tzinfo.key}]"
    raise CannotBuild(f"time in a zone of the type {class_name(kind)}")
