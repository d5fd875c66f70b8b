"""Bodies, both ways: each one in the most readable form that gives back every byte, written once and checked when read.

The forms are JSON, events of a stream, lines of JSON, text, and plain bytes in base64, which fits always. A form is
only taken where it gives back every byte.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from rewind.dataclass import dataclass
from rewind.errors import BadCassette, EnvironmentProblem
from rewind.model.ids import BlobId
from rewind.model.step import NO_BYTES
from rewind.store.cassette import json_text
from rewind.store.cassette.fields import Fields, bad, count, counts, digest, fields_of, text, texts
from rewind.store.cassette.json_text import PLAIN, WHITESPACE, JsonTextStyle, OddJson, lines_of, pieces_of
from rewind.store.cassette.references import Addressed, References
from rewind.store.cassette.seal import MOST_OF_JSON, UnsealedCassette, ValueBudget
from rewind.store.cassette.shared_values import BodySums, JsonBodies, SharedTexts
from rewind.wire.encoding import StreamDecoder, UndecodableBody, decode
from rewind.wire.growing_json import GrowingFold
from rewind.wire.json_weight import quick_weight

Form = Literal["json", "events", "lines", "text", "bytes"]
FORMS: tuple[Form, ...] = ("json", "events", "lines", "text", "bytes")
BY_TYPE = "{type}"
"""Events are named by the ``type`` in their data."""
_MOST_PADDING = 10_000
_BLANKS = WHITESPACE.encode()
MOST_OF_A_BODY = 64 * 1024 * 1024
MOST_OF_BODIES = 4 * 1024 * 1024 * 1024
_BASE64_LINE = 76
_SPARE = 1024 * 1024
"""By how much bodies may be larger than their small print says: somebody edited them."""
_UNMEASURED = 1024 * 1024 + _SPARE
_KEPT = 32 * 1024 * 1024
"""Bodies beyond this are not held as bytes, and made anew when they are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyForm:
    """A body in one of the forms."""

    form: Form
    root: Any
    """The JSON value; the list of events, lines or pieces of text; the bytes."""
    style: JsonTextStyle = PLAIN
    event: str | None = None
    """How events are named; ``None`` where they have no name."""
    newline: str = "\n"
    pads: tuple[int, ...] = ()
    """How many spaces stand before the last bracket of each event's data: some providers hide lengths that way."""


def form_of(body: bytes, growing: JsonBodies | None = None) -> BodyForm:
    """The most readable form that gives back every byte; see ``value_of`` for ``growing``."""
    growing = growing or JsonBodies()
    try:
        with suppress(OddJson):  # then it is text
            begin = body.lstrip(_BLANKS)[:1]
            if begin in (b"{", b"["):
                return _as_json(body, growing)
            if begin == b":" or body.startswith((b"data:", b"event:", b"id:", b"retry:")):
                return _as_stream("events", body, "\r\n" if b"\r\n" in body else "\n", growing)
        return BodyForm(form="text", root=pieces_of(body.decode()))
    except UnicodeDecodeError:
        return BodyForm(form="bytes", root=body)


def bytes_of(body: BodyForm, limit: int, shared: SharedTexts | None = None) -> bytes:
    """The bytes again. Raises BadCassette where they would be more than the limit, which is checked first."""
    try:
        match body.form:
            case "bytes":
                data: bytes = body.root
            case "text":
                _within(sum(map(len, body.root)), limit)
                data = "".join(body.root).encode()
            case "json":
                most = limit * 2 if limit > _UNMEASURED else None
                known = None if shared is None else shared.written(body.root, body.style, most)
                if known is None:
                    _measured(body, limit)
                    known = json_text.written(body.root, body.style).encode()
                data = known
            case "events" | "lines":
                _measured(body, limit)
                data = "".join(_blocks_again(body)).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise BadCassette(f"A body cannot be written again ({error}).") from error
    _within(len(data), limit)
    return data


def _within(size: int, limit: int) -> None:
    if size > limit:
        bad("A body is larger than it says.")


def _measured(body: BodyForm, limit: int) -> None:
    """A small one cannot become large; the others are measured before they are written."""
    framing = sum(body.pads)
    if body.event is not None and body.form == "events":
        framing += len(body.root) * len(body.event)
    _within(framing, limit)
    if limit > _UNMEASURED or body.style.indent is not None:
        _within(json_text.size_written(body.root, body.style, limit * 2), limit * 2)


def _as_json(body: bytes, growing: JsonBodies) -> BodyForm:
    try:
        value, style = growing.read(body)
        return BodyForm(form="json", root=value, style=style)
    except OddJson:
        return _as_stream("lines", body, "\n", growing)


class _Block(NamedTuple):
    """An event or a line, taken apart."""

    name: str | None
    value: Any
    data: str
    """Its JSON text, without the padding."""
    pad: int


def _as_stream(form: Literal["events", "lines"], data: bytes, newline: str, growing: JsonBodies) -> BodyForm:
    blocks = lines_of(data.decode(), newline * 2 if form == "events" else newline)
    body: BodyForm | None = None
    root: list[Any] = []
    pads: list[int] = []
    for raw in blocks:
        block = _block(raw, form, newline)
        if block is not None and body is None:
            try:
                style = json_text.style_of(block.data, block.value, growing.traits(data))
            except OddJson:
                block = None
            else:
                body = BodyForm(form=form, root=root, style=style, event=_naming(block), newline=newline)
        if block is not None and body is not None and _framed(body, block.value, block.pad) == raw:
            root.append(block.value)
            pads.append(block.pad)
        else:
            root.append(raw)
    if body is None or not pads or len(pads) * 3 < len(blocks):
        raise OddJson("most of it is not JSON")
    return replace(body, pads=tuple(pads)) if any(pads) else body


def _block(raw: str, form: Form, newline: str) -> _Block | None:
    """``None`` where it holds anything else than one JSON value."""
    before, end = ("data: ", newline * 2) if form == "events" else ("", newline)
    if not raw.endswith(end):
        return None
    lines = raw[: -len(end)].split(newline)
    named = form == "events" and lines[0].startswith("event: ")
    name = lines.pop(0)[len("event: ") :] if named else None
    if len(lines) != 1 or not lines[0].startswith((before + "{", before + "[")):
        return None
    data = lines[0][len(before) :]
    try:
        value = json_text.value_of(data)
    except OddJson:
        return None
    core = data[:-1].rstrip(" ") + data[-1]
    pad = len(data) - len(core)
    return _Block(name, value, core, pad) if pad <= _MOST_PADDING else None


def _naming(block: _Block) -> str | None:
    if isinstance(block.value, dict) and block.name == block.value.get("type") and block.name is not None:
        return BY_TYPE
    return block.name


def _framed(body: BodyForm, value: Any, pad: int) -> str:
    """An event or a line of that value."""
    data, newline, name = json_text.written(value, body.style), body.newline, body.event
    if pad:
        data = data[:-1] + " " * pad + data[-1]
    if body.form == "lines":
        return data + newline
    if name == BY_TYPE:
        name = value.get("type") if isinstance(value, dict) else None
        if not isinstance(name, str):
            return ""
    head = "" if name is None else f"event: {name}{newline}"
    return f"{head}data: {data}{newline}{newline}"


def _blocks_again(body: BodyForm) -> Iterator[str]:
    pads = iter(body.pads)
    for block in body.root:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict | list):
            yield _framed(body, block, next(pads, 0))
        else:
            raise TypeError("an event is neither JSON nor text")


def form_fields(body: BodyForm) -> Fields:
    """The fields of a body in its step, without the root; defaults are left out."""
    fields: Fields = {} if body.event is None else {"event": body.event}
    if body.newline != "\n":
        fields["newline"] = body.newline
    if style := json_text.style_fields(body.style):
        fields["style"] = style
    return fields


def form_in(fields: Fields, pads: list[int], data: bytes | None) -> BodyForm:
    """The form again, from the fields of a step and of its small print. Raises BadCassette."""
    form = next((name for name in FORMS if name in fields), None)
    if form is None:
        bad("A body has a form that this Rewind does not know.")
    if form == "bytes":
        return BodyForm(form=form, root=bad("The bytes of a body are missing.") if data is None else data)
    root, event, newline = fields[form], fields.get("event"), fields.get("newline", "\n")
    sound = (
        (form == "json" or isinstance(root, list))
        and (form != "text" or all(isinstance(piece, str) for piece in root))
        and (event is None or isinstance(event, str))
        and newline in ("\n", "\r\n")
        and all(0 <= pad <= _MOST_PADDING for pad in pads)
    )
    if not sound:
        bad("A body is not what its form says.")
    style = json_text.style_in(fields["style"]) if "style" in fields else PLAIN
    return BodyForm(form=form, root=root, style=style, event=event, newline=newline, pads=tuple(pads))


class BodyWriter:
    """Turns bodies into fields. A body that occurs twice is written once."""

    def __init__(self, blob: Callable[[BlobId], bytes]) -> None:
        self.size = 0
        """Of all bodies written so far."""
        self._values = ValueBudget()
        self._blob = blob
        self._names: dict[BlobId, str] = {}
        self._growing = JsonBodies()

    def body(self, name: str, blob: BlobId, coding: str | None) -> tuple[Fields, Fields]:
        """Its fields in the step, and those in the small print. Raises EnvironmentProblem if it is too large."""
        if blob == NO_BYTES:
            return {}, {}
        if (known := self._names.setdefault(blob, name)) != name:
            _check_values(self._values.again(known))
            return {"same_as": known}, {}
        data = self._blob(blob)
        self.size += len(data)
        _check_size(name, len(data), self.size)
        small: Fields = {"size": len(data), "sha256": blob.removeprefix("sha256:")}
        plain = _unfolded(data, coding)
        shown = data if plain is None else plain
        form = form_of(shown, self._growing)
        weight = self._growing.traits(shown).signs.weight(shown) if form.form == "json" else None
        _check_values(self._values.body(name, form.form, shown, weight))
        root = len(data) if form.form == "bytes" else Addressed(name, form.root)
        fields: Fields = {form.form: root, **form_fields(form)}
        if form.pads:
            small["pads"] = form.pads
        if plain is not None:
            fields["coding"] = coding
            small["unfolded"] = len(plain)
        if plain is not None or form.form == "bytes":
            encoded = base64.b64encode(data).decode()
            small["bytes"] = [encoded[at : at + _BASE64_LINE] for at in range(0, len(encoded), _BASE64_LINE)]
        return fields, small


def _check_values(problem: str | None) -> None:
    if problem is not None:
        raise EnvironmentProblem(problem, hint="Export the other steps: rewind export ID --steps 1..100")


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
    """A compressed body, unpacked; ``None`` if it is not compressed or not text."""
    if coding is None:
        return None
    try:
        plain = decode(data, coding, limit=MOST_OF_A_BODY)
        plain.decode()
    except (UndecodableBody, UnicodeDecodeError):
        return None
    return None if plain == data else plain


class CassetteBodies(Mapping[BlobId, bytes]):
    """The bodies of a cassette by name. Many are held as values, which share what they have in common."""

    def __init__(self, shared: SharedTexts) -> None:
        self._shared = shared
        self._bodies: dict[BlobId, bytes | tuple[BodyForm, int]] = {}
        self._held = 0

    def add(self, blob: BlobId, data: bytes, form: BodyForm, text_size: int) -> bool:
        """True if it is held as bytes: they are no larger than the text that shows them, or few so far."""
        as_bytes = form.form == "bytes" or self._held + len(data) <= _KEPT or len(data) <= text_size
        self._held += len(data) if as_bytes else 0
        self._bodies[blob] = data if as_bytes else (form, len(data))
        return as_bytes

    def __getitem__(self, blob: BlobId) -> bytes:
        found = self._bodies[blob]
        return found if isinstance(found, bytes) else bytes_of(*found, self._shared)

    def __iter__(self) -> Iterator[BlobId]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


class BodyReader:
    """Turns fields into bodies, and checks each one. Raises BadCassette."""

    def __init__(self, references: References, cassette: UnsealedCassette) -> None:
        self._shared = SharedTexts(references.measures)
        self.bodies = CassetteBodies(self._shared)
        self._sums = GrowingFold(BodySums(), BodySums.more)
        self.left = cassette.manifest.size
        """How many bytes the manifest still allows."""
        self._references = references
        self._referred = cassette.referred
        self._memory = cassette.memory
        self._names: dict[str, tuple[BlobId, int]] = {}
        self._text_left = 0
        self._values = ValueBudget()
        self._packed: dict[str, BlobId] = {}
        """Bodies that are shown as bytes alone."""
        self._unpacked_left = MOST_OF_BODIES
        self.remarks: list[str] = []
        """What the file states of a body that it is not."""

    def begin(self, length: int) -> None:
        """The next bodies are in a record of that length."""
        self._text_left = length

    def body(self, name: str, fields: Any, small: Fields, weight: int) -> tuple[BlobId, int]:
        """Name and size of the body in these fields, whose values take ``weight``.

        What it needs of the small print is taken out.
        """
        if fields is None:
            return NO_BYTES, 0
        fields = fields_of(fields, "A body")
        if "same_as" in fields:
            same = text(fields, "same_as")
            self._check_values(self._values.again(same))
            return self._names.get(same) or bad("A body refers to a body that is not in the file.")
        size = count(small, "size", least=1, most=MOST_OF_A_BODY)
        form, data = self._read(name, fields, small, min(size + _SPARE, MOST_OF_A_BODY))
        self.left -= len(data)
        if self.left < -_SPARE:
            bad("Its bodies are larger than it says.")
        sha256 = self._sums.of(data).digest.hexdigest()
        if len(data) != size:
            self.remarks.append(f"the body of {name} has {len(data):,} bytes, not {size:,} as the file says")
        elif sha256 != digest(small, "sha256"):
            self.remarks.append(f"the body of {name} does not have the SHA-256 that the file says")
        blob, size = BlobId("sha256:" + sha256), len(data)
        if "bytes" in fields:
            self._packed[name] = blob
        as_bytes = self.bodies.add(blob, data, form, self._text_left)
        self._text_left -= len(data) if as_bytes else 0
        if not as_bytes or self._is_referred(name):
            self._memory.keep(weight)
        self._names[name] = blob, size
        return blob, size

    def unpack(self, name: str, coding: str | None) -> None:
        """A look at what a body is when its coding is taken off, where the file itself does not show it."""
        packed = self._packed.get(name)
        if coding is None or packed is None:
            return
        weight = 0
        with suppress(UndecodableBody):  # then it is looked at as bytes
            for piece in StreamDecoder(coding, limit=MOST_OF_A_BODY).pieces(self.bodies[packed]):
                weight += quick_weight(piece)
                self._unpacked_left -= len(piece)
                if weight > MOST_OF_JSON or self._unpacked_left < 0:
                    bad(f"The body of {name} holds more than a cassette takes when its coding is taken off.")

    def _check_values(self, problem: str | None) -> None:
        if problem is not None:
            bad(problem)

    def _is_referred(self, name: str) -> bool:
        return self._referred is None or name in self._referred

    def _read(self, name: str, fields: Fields, small: Fields, size: int) -> tuple[BodyForm, bytes]:
        packed = _base64_in(small) if "bytes" in small else None
        form = form_in(fields, counts(small, "pads"), packed)
        small.pop("bytes", None)
        small.pop("pads", None)
        if form.form != "bytes" and self._is_referred(name):
            self._references.name(name, form.root)
        if "coding" not in fields:
            data = bytes_of(form, size, self._shared)
            weight = self._sums.of(data).signs.weight(data) if form.form == "json" else None
            self._check_values(self._values.body(name, form.form, data, weight))
            return form, data
        if packed is None:
            bad("The bytes of a body are missing.")
        plain = bytes_of(form, count(small, "unfolded", most=MOST_OF_A_BODY))
        if _unfolded(packed, text(fields, "coding")) != plain:
            bad(f"The body of {name} is not what is shown of it.")
        self._check_values(self._values.body(name, form.form, plain))
        return BodyForm(form="bytes", root=packed), packed


def sizes_in(small: Any) -> int:
    """The size of a body when it is written out, as its small print says; 0 if it does not."""
    if type(small) is not dict:
        return 0
    sizes = (small.get("size"), small.get("unfolded"))
    return sum(size for size in sizes if type(size) is int and 0 < size <= MOST_OF_A_BODY)


def _base64_in(small: Fields) -> bytes:
    try:
        return binascii.a2b_base64("".join(texts(small, "bytes")), strict_mode=True)
    except ValueError as error:
        raise BadCassette(f"The bytes of a body cannot be read ({error}).") from error
