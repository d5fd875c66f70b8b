"""What is written is read back at once: a result comes back equal in a replay, or it is named as lost now.

"Equal" means: of the same type and with the same parts all the way down, in the same order, to the zone of a time and
the sign of a zero; and where its class says what equal is, equal by that, too.
"""

import json
from itertools import starmap
from typing import Any

from rewind.sdk.values.objects import Classes, class_fields, class_name, is_enum, parts_of, unset_in
from rewind.sdk.values.serialise import LOST, Lost, Written, as_json, plain_content, promised, read, write
from rewind.sdk.values.standard_types import form_of, in_one_order

_ASKED = 1_000_000
"""Bytes of JSON up to which a class is asked whether two objects are equal; its answer may cost anything."""
_BY_REPR = (float, complex, range, bytearray)
_IN_ORDER = (list, tuple)
_PAIRS = ("dict", "OrderedDict", "Counter", "defaultdict")


def write_checked(value: Any, known: Classes) -> Written:
    """As ``write``; what would not come back equal is lost. Raises nothing."""
    written = write(value, known)
    if written.lost is not None or not (written.types or written.plainer):
        return written  # what is plain JSON cannot come back as anything else
    try:
        kept = as_json(written.plain)
        back = read(Written(plain=json.loads(kept), types=written.types), known)
        equal = same(value, back, known, ask=len(kept) <= _ASKED)
        why = "that does not come back equal"
    except Lost as lost:
        equal, why = False, f"that cannot be given back ({lost})"
    except Exception as error:  # noqa: BLE001  a stranger's equality may do anything
        equal, why = False, f"that cannot be compared ({type(error).__name__})"
    if equal:
        return written
    return Written(plain=written.plain, types={"": f"{LOST}{class_name(type(value))} {why}"})


def same(value: Any, back: Any, known: Classes, *, ask: bool = True) -> bool:
    """Whether one can stand for the other. Raises whatever a stranger's ``__eq__`` raises."""
    comparison = _Comparison(known)
    if not comparison.same(value, back, ask=ask):
        return False
    # What is no number is not equal to itself, so a class that holds one cannot tell.
    return comparison.not_a_number or not comparison.said_no


class _Comparison:
    def __init__(self, known: Classes) -> None:
        self._known = known
        self.not_a_number = False
        self.said_no = False
        """A class says that they are not equal."""

    def same(self, value: Any, back: Any, *, ask: bool) -> bool:
        kind = type(back)
        if type(value) is not kind:
            if promised(value, self._known) is not kind:
                return False
            self._ask(value, back, ask)
            value = plain_content(value, kind)
        if kind in _BY_REPR:
            self.not_a_number |= back != back
            return repr(value) == repr(back)
        if kind in _IN_ORDER:
            return self._all(value, back, ask)
        if kind in (set, frozenset):
            return self._all(in_one_order(value), in_one_order(back), ask)
        form = form_of(kind)
        if form is not None and form.name in _PAIRS:
            default = getattr(value, "default_factory", None) is getattr(back, "default_factory", None)
            return default and self._all(list(value.items()), list(back.items()), ask)
        if form is not None and kind not in (int, bytes):
            self.not_a_number |= form.name == "Decimal" and back.is_nan()
            return repr(value) == repr(back)
        if is_enum(kind):
            return value is back
        if class_fields(kind) is not None:
            return self._objects(value, back, ask)
        return bool(value == back)

    def _all(self, values: Any, others: Any, ask: bool) -> bool:
        if len(values) != len(others):
            return False
        return all(
            starmap(lambda one, other: self.same(one, other, ask=ask), zip(values, others, strict=True))
        )

    def _objects(self, value: Any, back: Any, ask: bool) -> bool:
        self._ask(value, back, ask)
        # Once: asked again for each part, a deep object would be compared over and over.
        return unset_in(value) == unset_in(back) and self.same(parts_of(value), parts_of(back), ask=False)

    def _ask(self, value: Any, back: Any, ask: bool) -> None:
        says: Any = type(value).__eq__
        if ask and says is not object.__eq__ and not value == back:  # noqa: SIM201
            self.said_no = True
