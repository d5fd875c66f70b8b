"""The bodies of a cassette: how each is told in its step and in the small print, and how it is checked when read."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.model.ids import BlobId
from rewind.model.step import NO_BYTES
from rewind.store.cassette.bodies import Shown, bytes_of, shown, shown_fields, shown_in
from rewind.store.cassette.checks import Fields, bad, count, counts, digest, fields_of, text, texts
from rewind.store.cassette.layout import Addressed
from rewind.store.cassette.parsing import Source
from rewind.store.cassette.references import References
from rewind.store.cassette.sealing import Opened

MOST_OF_A_BODY = 64 * 1024 * 1024
MOST_OF_BODIES = 4 * 1024 * 1024 * 1024
_BASE64_LINE = 76
_KEPT = 32 * 1024 * 1024
"""Bodies beyond this are not held as bytes, and made anew when they are asked for."""


class Telling:
    """Bodies become fields; each is told once."""

    def __init__(self, blob: Callable[[BlobId], bytes]) -> None:
        self.size = 0
        """Of all bodies told so far."""
        self._blob = blob
        self._names: dict[BlobId, str] = {}

    def body(self, name: str, blob: BlobId, coding: str | None) -> tuple[Fields, Fields]:
        """What stands in the step, and what in the small print. Raises EnvironmentProblem for what is too large."""
        if blob == NO_BYTES:
            return {}, {}
        if (known := self._names.setdefault(blob, name)) != name:
            return {"same_as": known}, {}
        data = self._blob(blob)
        self.size += len(data)
        _check_size(name, len(data), self.size)
        small: Fields = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        plain = _unfolded(data, coding)
        form = shown(data if plain is None else plain)
        fields: Fields = (
            {"bytes": len(data)} if form.form == "bytes" else {form.form: Addressed(name, form.root)}
        )
        fields |= shown_fields(form)
        if form.pads:
            small["pads"] = form.pads
        if plain is not None:
            fields["coding"] = coding
            small["unfolded"] = len(plain)
        if plain is not None or form.form == "bytes":
            small["bytes"] = list(_base64_lines(data))
        return fields, small


def _check_size(name: str, size: int, total: int) -> None:
    if size > MOST_OF_A_BODY:
        raise EnvironmentProblem(
            f"The body of {name} has {size:,} bytes: more than the {MOST_OF_A_BODY:,} that a cassette takes."
        )
    if total > MOST_OF_BODIES:
        raise EnvironmentProblem(
            f"The session has more than {MOST_OF_BODIES:,} bytes of bodies, which is all that a cassette takes.",
            hint="Export some of its steps: rewind export ID --steps 1..100",
        )


def _unfolded(data: bytes, coding: str | None) -> bytes | None:
    """What a compressed body reads; ``None`` where it is not compressed, or cannot be read as text."""
    if coding is None:
        return None
    from rewind.wire.encoding import UndecodableBody, decode  # lazily: it loads what unpacks

    try:
        plain = decode(data, coding, limit=MOST_OF_A_BODY)
        plain.decode()
    except (UndecodableBody, UnicodeDecodeError):
        return None
    return None if plain == data else plain


def _base64_lines(data: bytes) -> Iterator[str]:
    encoded = base64.b64encode(data).decode()
    for at in range(0, len(encoded), _BASE64_LINE):
        yield encoded[at : at + _BASE64_LINE]


class Bodies(Mapping[BlobId, bytes]):
    """The bodies of a cassette by name. Many are held as values, which share what they have in common."""

    def __init__(self) -> None:
        self._bodies: dict[BlobId, bytes | tuple[Shown, int]] = {}
        self._held = 0

    def add(self, blob: BlobId, data: bytes, form: Shown, shown_by: int) -> bool:
        """Whether the form is held, and not the bytes: where they are more than the text that shows them."""
        if form.form == "bytes" or self._held + len(data) <= _KEPT or len(data) <= shown_by:
            self._held += len(data)
            self._bodies[blob] = data
            return False
        self._bodies[blob] = form, len(data)
        return True

    def __getitem__(self, blob: BlobId) -> bytes:
        found = self._bodies[blob]
        return found if isinstance(found, bytes) else bytes_of(*found)

    def __iter__(self) -> Iterator[BlobId]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


class Hearing:
    """Fields become bodies, each one checked. Raises BadCassette."""

    def __init__(self, references: References, opened: Opened) -> None:
        self.bodies = Bodies()
        self.left = opened.manifest.size
        """How many bytes the manifest still allows."""
        self._references = references
        self._referred = opened.referred
        self._memory = opened.memory
        self._names: dict[str, tuple[BlobId, int]] = {}

    def body(self, name: str, fields: Any, small: Fields, source: Source) -> tuple[BlobId, int]:
        """Name and size of the body that these fields tell of. What it needs of the small print is taken out."""
        if fields is None:
            return NO_BYTES, 0
        fields = fields_of(fields, "A body")
        if "same_as" in fields:
            return self._names.get(text(fields, "same_as")) or bad(
                "A body is said to be one that is not there."
            )
        size = count(small, "size", least=1, most=MOST_OF_A_BODY)
        self.left -= size
        if self.left < 0:
            bad("Its bodies are larger than it says.")
        form, data = self._read(name, fields, small, size)
        sha256 = hashlib.sha256(data).hexdigest()
        if len(data) != size or sha256 != digest(small, "sha256"):
            bad(f"The body of {name} is not what was recorded.")
        blob = BlobId("sha256:" + sha256)
        held = self.bodies.add(blob, data, form, source.length)
        if held or self._is_referred(name):
            self._memory.keep(source.weight())
        self._names[name] = blob, size
        return blob, size

    def _is_referred(self, name: str) -> bool:
        return self._referred is None or name in self._referred

    def _read(self, name: str, fields: Fields, small: Fields, size: int) -> tuple[Shown, bytes]:
        packed = _base64_in(small) if "bytes" in small else None
        form = shown_in(fields, counts(small, "pads"), packed)
        small.pop("bytes", None)
        small.pop("pads", None)
        if form.form != "bytes" and self._is_referred(name):
            self._references.name(name, form.root)
        if "coding" not in fields:
            return form, bytes_of(form, size)
        if packed is None:
            bad("The bytes of a body are missing.")
        plain = bytes_of(form, count(small, "unfolded", most=MOST_OF_A_BODY))
        if _unfolded(packed, text(fields, "coding")) != plain:
            bad(f"The body of {name} is not what is shown of it.")
        return Shown(form="bytes", root=packed), packed


def sizes_told(small: Any) -> int:
    """How much a body comes to when it is written out, as far as its small print tells."""
    if type(small) is not dict:
        return 0
    told = (small.get("size"), small.get("unfolded"))
    return sum(size for size in told if type(size) is int and 0 < size <= MOST_OF_A_BODY)


def _base64_in(small: Fields) -> bytes:
    try:
        return binascii.a2b_base64("".join(texts(small, "bytes")), strict_mode=True)
    except ValueError as error:
        raise BadCassette(f"The bytes of a body cannot be read ({error}).") from error
