"""The secret values that are known, where they come from, and the scanner that finds them.

Values are learned before anything of a request is written: from the environment when a run begins, and from the
credentials of every request as it arrives. They stay in memory and are shown by nothing, not even by ``repr``.
"""

import base64
import binascii
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote, unquote_plus

from rewind.credentials import names_a_key, names_this_machine, variable_kind
from rewind.model.http import RequestHead
from rewind.redaction.names import (
    COOKIE_HEADERS,
    KEY_HEADERS,
    KEY_PARAMETERS,
    LOOSE_PARAMETERS,
    PASSING_PARAMETERS,
    is_credential_header,
)
from rewind.redaction.scanner import Scanner
from rewind.redaction.values import forms, is_location, is_searchable, looks_random

_PASSING = 32
"""Cookies and URL signatures change all the time; only so many of the latest are searched for."""
_SEEN = 4096

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_-]*) +(.+)", re.DOTALL)
_AWS_KEY_ID = re.compile(r"Credential=([^/,\s]+)")
_AUTHORITY = re.compile(r"(?<=[A-Za-z0-9+.-])://([^/?#\s]*)@")
_LOGIN = re.compile(r"[^\s/:@]+:([^\s@]+)@[a-z0-9]*\(")
"""``user:password@tcp(host)``, as Go writes the address of a database."""
_MEMBER = re.compile(r"([A-Za-z][A-Za-z ]{0,40}?)\s{0,9}=\s*([^;\s'\"]+|'[^']*'|\"[^\"]*\")")
"""One of the ``Name=value`` in a connection string. The name is bounded: a variable may hold a long text."""
_BROWSER_KEY = re.compile(r"openai-insecure-api-key\.(.+)")


class _Search:
    """What is searched for. The scanner takes milliseconds to make, and a replay that hits the tape never scans."""

    def __init__(self, forms: tuple[frozenset[bytes], ...], letters: str) -> None:
        self._forms = forms
        self._letters = letters

    @cached_property
    def scanner(self) -> Scanner:
        return Scanner((form for group in self._forms for form in group), letters=self._letters)


class Secrets:
    """Known secret values. One thread learns; any thread may read ``scanner``, which is replaced and never changed."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: dict[str, frozenset[bytes]] = {}
        self._passing: deque[str] = deque(maxlen=_PASSING)
        self._seen: set[str] = set()
        self._search = _Search((), "")
        self.add(*values)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "Secrets":
        """The values of variables that hold credentials, by their names and by how the values look."""
        found = (value for name, given in env.items() for value in _in_variable(name, given))
        return cls(value for value in found if not names_this_machine(value, env))

    @property
    def scanner(self) -> Scanner:
        return self._search.scanner

    def __len__(self) -> int:
        return len(self._forms)

    def __repr__(self) -> str:
        return f"<Secrets: {len(self)} values>"

    def add(self, *values: str) -> None:
        """Search for these values too, where they can be searched for at all."""
        self._know([(value, False) for value in values])

    def learn(self, head: RequestHead) -> None:
        """Learn the credentials of a request. Costs next to nothing when they are known."""
        found: list[tuple[str, bool]] = []
        for name, value in head.headers:
            if _may_hold_credentials(name) and value not in self._seen:
                self._see(value)
                found += _in_header(name.lower(), _as_text(value))
        if "=" in head.query:
            found += _in_query(head.query)
        if found:
            self._know(found)

    def _see(self, value: str) -> None:
        if len(self._seen) >= _SEEN:
            self._seen.clear()
        self._seen.add(value)

    def _know(self, found: Iterable[tuple[str, bool]]) -> None:
        changed = False
        for given, passing in found:
            # Quotes that an env file or a shell left around a value are not part of it, and searching for them
            # would find, and replace, the quotes of JSON strings.
            value = given.strip("\"'` \t\r\n")
            if value in self._forms or not is_searchable(value):
                continue
            if passing:
                if len(self._passing) == _PASSING:
                    del self._forms[self._passing[0]]
                self._passing.append(value)
            self._forms[value] = forms(value)
            changed = True
        if changed:
            self._search = _Search(tuple(self._forms.values()), "".join(self._forms))


def credential_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables that hold credentials and nothing else; a replay gives them dummies.

    Mostly the name alone says so: an agent that was recorded with ``OPENAI_API_KEY=EMPTY`` does not start without it
    either, although that value is no secret.
    """
    return tuple(sorted(name for name, value in env.items() if _is_key(name, value, env)))


def _is_key(name: str, value: str, env: Mapping[str, str]) -> bool:
    if names_a_key(name):
        return bool(value.strip()) and not is_location(value)
    return any(not names_this_machine(secret, env) for secret in _in_named_variable(name, value))


def _in_variable(name: str, value: str) -> Iterator[str]:
    """What is secret in that variable, by the name of it and by how it is written."""
    yield from _in_named_variable(name, value)
    yield from _in_addresses(value)
    words = name.lower().split("_")
    if "://" in value and not {"dsn", "webhook", "webhooks"}.isdisjoint(words):
        # Who knows the address may use it: the path is the key.
        yield from (part for part in re.split(r"[/?#=&@:]", value.partition("://")[2]) if looks_random(part))


def _in_addresses(value: str) -> Iterator[str]:
    """The passwords in URLs and connection strings, whatever the variable is called."""
    for authority in _AUTHORITY.findall(value):
        user, _, password = authority.partition(":")
        yield unquote(password)
        if looks_random(user):  # a token in the place of the user
            yield unquote(user)
    if "://" in value:
        yield from (secret for secret, _ in _in_query(value.partition("?")[2].partition("#")[0]))
    elif login := _LOGIN.match(value):
        yield login[1]
    if "=" in value and (";" in value or " " in value):
        for member, given in _MEMBER.findall(value):
            kind, secret = variable_kind(member.replace(" ", "_")), given.strip("'\"")
            if (kind == "plain" and secret[:1] not in "$({") or (kind == "loose" and looks_random(secret)):
                yield secret


def _in_named_variable(name: str, value: str) -> Iterator[str]:
    kind = variable_kind(name)
    if kind is None or is_location(value):
        return
    if value.lstrip().startswith("{"):
        # A service account's JSON. Some of it is secret, and to replace all of it could leave half an object.
        parts = list(_in_json_text(value))
        if parts:
            yield from parts
            return
    elif "," in value or ";" in value:
        # Several keys; or cookies, whose names are nothing to hide.
        parts = [part.partition("=")[2] if ";" in value else part for part in map(str.strip, re.split("[,;]", value))]
        yield from (part for part in parts if looks_random(part))
    if (is_searchable if kind == "plain" else looks_random)(value):
        yield value


def _in_json_text(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    left: list[tuple[str, Any]] = [("", value)]
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += value.items()
        elif isinstance(value, list):
            left += ((name, item) for item in value)
        elif isinstance(value, str) and variable_kind(name) and not is_location(value):
            yield value


def _as_text(value: str) -> str:
    """Header values are bytes read as latin-1; nearly all that is not ASCII was UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except ValueError:
        return value


@lru_cache(maxsize=512)
def _may_hold_credentials(header: str) -> bool:
    """Asked for every header of every request, and there are few of them."""
    name = header.lower()
    return name == "sec-websocket-protocol" or is_credential_header(name)


def _in_header(name: str, value: str) -> Iterator[tuple[str, bool]]:
    """Each secret in that header, and whether it is one of those that come and go."""
    if name in COOKIE_HEADERS:
        for pair in value.split(";"):
            cookie = pair.partition("=")[2].strip().strip('"')
            if looks_random(cookie):
                yield cookie, True
        return
    if name == "sec-websocket-protocol":
        for part in map(str.strip, value.split(",")):
            key = _BROWSER_KEY.fullmatch(part)
            if key:
                yield key[1], False
            elif looks_random(part):
                yield part, False
        return
    scheme = _SCHEME.fullmatch(value.strip())
    if scheme and scheme[1].upper().startswith("AWS4"):
        # The signature is good for this request alone, and there is a new one in the next.
        yield from ((key_id, False) for key_id in _AWS_KEY_ID.findall(value))
        return
    token = scheme[2].strip() if scheme else value.strip()
    if name in KEY_HEADERS or looks_random(token):
        yield token, False
    if scheme and scheme[1].lower() == "basic":
        yield from ((part, False) for part in _in_basic(token))


def _in_basic(token: str) -> Iterator[str]:
    try:
        user, _, password = base64.b64decode(token + "===").decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return
    yield password
    if looks_random(user):
        # Some APIs take the key as the user's name, with no password.
        yield user


def _in_query(query: str) -> Iterator[tuple[str, bool]]:
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        name = unquote_plus(name).lower()
        value = unquote(value)
        if name in KEY_PARAMETERS or (name in LOOSE_PARAMETERS and looks_random(value)):
            yield value, name in PASSING_PARAMETERS
