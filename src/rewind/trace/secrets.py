"""The credentials of this process, which must not reach the disk: the values of its key variables, however written.

The rule of the gateway's recorder (:mod:`rewind.redaction`) in small: a trace is written in the agent's own process
with the standard library alone, and a step may take only microseconds.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rewind.credentials import is_dummy, names_this_machine, variable_kind

_SHORTEST = 8
"""Shorter values are too likely to be in a text by chance."""
_HARMLESS = re.compile(r"[-+0-9.,_:eE]+|[a-z]{1,15}|[A-Z]?[a-z]{1,14}|[A-Z]{1,15}|(?:~|\.{0,2})/[\w./-]*|(.)\1*")
"""Numbers, single words, paths, one repeated character: what people write where no secret is needed."""
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])(?!.*://)\S+")
_URL_PASSWORD = re.compile(r"://[^/?#\s:@]*:([^/?#\s]*)@")
_UNQUOTED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
"""What a URL keeps as it is. (Importing ``urllib.parse`` for this would cost more than all the rest.)"""
_CAPITALS, _DIGITS = _UNQUOTED[:26], b"0123456789"
_PROBE = 16
"""Bytes of a form that are looked for first."""


class OwnSecrets(NamedTuple):
    """Each way of writing a credential of this process; the longest first, as one value may be a part of another."""

    forms: tuple[bytes, ...] = ()
    probes: tuple[str, ...] = ()
    """A piece of each form, byte by byte: nearly every line is cleared by looking for these, in a third of the time."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "OwnSecrets":
        written = {
            form
            for name, given in environment.items()
            for value in _in_variable(name, given)
            if not names_this_machine(value, environment)
            for form in _forms(value)
        }
        forms = tuple(sorted(written, key=len, reverse=True))
        return cls(forms, tuple(dict.fromkeys(_probe(form).decode("latin-1") for form in forms)))

    def removed(self, data: bytes) -> bytes:
        """The same bytes with a placeholder as long as each secret in its place."""
        text = data.decode("latin-1")  # Python looks for a text three times as fast as for bytes
        for probe in self.probes:
            if probe in text:
                break
        else:
            return data
        for form in self.forms:
            if form in data:
                data = data.replace(form, b"REDACTED".ljust(len(form), b"x"))
        return data


def _probe(form: bytes) -> bytes:
    """A piece that ends in a capital letter, or else a digit: searching goes by the last byte, and those are rare."""
    for signs in (_CAPITALS, _DIGITS):
        end = max(form.rfind(sign) for sign in signs) + 1
        if end >= _SHORTEST:
            return form[max(0, end - _PROBE) : end]
    return form


def _in_variable(name: str, value: str) -> Iterator[str]:
    """Its value; of an address, the password in it, whatever the variable is called."""
    if "://" in value:
        yield from (password for password in _URL_PASSWORD.findall(value) if _may_be_secret(password))
    kind = variable_kind(name)
    if kind is not None and _may_be_secret(value) and (kind == "plain" or _RANDOM.fullmatch(value)):
        yield value


def _may_be_secret(value: str) -> bool:
    return len(value) >= _SHORTEST and not _HARMLESS.fullmatch(value) and not is_dummy(value)


def _forms(value: str) -> Iterator[bytes]:
    """As it is, as JSON has it (also in JSON inside JSON), as a URL has it, and inside any base64 text."""
    raw = value.encode("utf-8", "surrogateescape")
    yield raw
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once.encode("utf-8", "surrogateescape")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogateescape")
    yield b"".join(bytes([sign]) if sign in _UNQUOTED else b"%%%02X" % sign for sign in raw)
    for shift in range(3):
        # The characters that depend on the value alone, wherever in the encoded text it begins.
        inner = b64encode(bytes(shift) + raw)[(8 * shift + 5) // 6 : 8 * (shift + len(raw)) // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
