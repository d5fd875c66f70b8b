"""Secrets on a command line: known values, and whatever stands where a secret is expected.

The command is run again by a replay, so what is replaced must be a secret and not, say, a number of tokens.
"""

import re
from collections.abc import Sequence

from rewind.redaction.forms import placeholder
from rewind.redaction.names import is_credential_header, option_kind
from rewind.redaction.values import is_dummy, is_location, looks_random

_PLAIN = re.compile(r"[-+0-9.,]+|true|false|yes|no|none|null|on|off|auto", re.IGNORECASE)
_ASSIGNED = re.compile(r"(-{0,2}[A-Za-z_][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)
_OPTION = re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9_.-]*")
_HEADER = re.compile(
    r"((?:-H|--[a-z-]+=)?([a-z][a-z0-9_-]*):\s*(?:(?:bearer|basic|token)\s+)?)(\S.*)",
    re.DOTALL | re.IGNORECASE,
)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)
_INNER = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(?:'([^']+)'|\"([^\"]+)\"|([^\s'\";&|()]+))")
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:)([^/?#\s@]+)(?=@)")


def scrub_arguments(arguments: Sequence[str]) -> tuple[list[str], int]:
    """The arguments without what stands where a secret is expected, and how many were replaced."""
    kept: list[str] = []
    count = 0
    expected: str | None = None
    for argument in arguments:
        if expected is not None and not argument.startswith("-") and _is_secret(argument, expected):
            kept.append(_hidden(argument))
            count += 1
            expected = None
            continue
        expected = option_kind(argument) if _OPTION.fullmatch(argument) else None
        scrubbed, found = _scrub(argument)
        kept.append(scrubbed)
        count += found
    return kept, count


def _scrub(argument: str) -> tuple[str, int]:
    if whole := _ASSIGNED.fullmatch(argument):
        kind = option_kind(whole[1])
        # A shell's script may well begin with an assignment; only an option's value has spaces in it.
        one_value = whole[1].startswith("-") or not any(map(str.isspace, whole[2]))
        if kind and one_value and _is_secret(whole[2], kind):
            return f"{whole[1]}={_hidden(whole[2])}", 1
    header = _HEADER.fullmatch(argument)
    if header and is_credential_header(header[2].lower()) and _is_secret(header[3], "plain"):
        return header[1] + _hidden(header[3]), 1
    argument, passwords = _USERINFO.subn(lambda found: found[1] + _hidden(found[2]), argument)
    count = passwords

    def inside(found: re.Match[str]) -> str:
        # Anywhere in a script, "name=value" is more often code than a key.
        nonlocal count
        value = found[2] or found[3] or found[4]
        if option_kind(found[1]) is None or not looks_random(value):
            return found[0]
        count += 1
        return found[0].replace(value, _hidden(value))

    def bearer(found: re.Match[str]) -> str:
        nonlocal count
        if not looks_random(found[2]):
            return found[0]
        count += 1
        return found[1] + _hidden(found[2])

    return _BEARER.sub(bearer, _INNER.sub(inside, argument)), count


def _is_secret(value: str, kind: str) -> bool:
    if value.startswith("$") or _PLAIN.fullmatch(value) or is_location(value) or is_dummy(value):
        return False
    return kind == "plain" or looks_random(value)


def _hidden(value: str) -> str:
    return placeholder(len(value))
