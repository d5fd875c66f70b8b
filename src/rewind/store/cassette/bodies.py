"""Bodies as a cassette shows them: as JSON, as events of a stream, as lines of JSON, as text; else as plain bytes.

Whatever the form, it gives back every byte. A form is only taken where it does; the next one is tried otherwise, and
base64 fits always.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rewind.errors import BadCassette
from rewind.store.cassette.styles import (
    PLAIN,
    WHITESPACE,
    Odd,
    Style,
    size_written,
    style_fields,
    style_in,
    style_of,
    value_of,
    written,
)
from rewind.store.cassette.text import pieces_of

Form = Literal["json", "events", "lines", "text", "bytes"]
FORMS: tuple[Form, ...] = ("json", "events", "lines", "text", "bytes")
BY_TYPE = "{type}"
"""Events are named by the ``type`` in their data."""
_UNMEASURED = 1024 * 1024
_MOST_PADDING = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A body in one of the forms."""

    form: Form
    root: Any
    """The JSON value; the list of events, lines or pieces of text; the bytes."""
    style: Style = PLAIN
    event: str | None = None
    """How events are named; ``None`` where they have no name."""
    newline: str = "\n"
    pads: tuple[int, ...] = ()
    """How many spaces stand before the last bracket of each event's data: some providers hide lengths that way."""


def shown(body: bytes) -> Shown:
    """The most readable form that gives back every byte."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Shown(form="bytes", root=body)
    attempts: tuple[Callable[[str], Shown], ...] = ()
    begin = text.lstrip(WHITESPACE)[:1]
    if begin in ("{", "["):
        attempts = (_as_json, _as_lines)
    elif begin == ":" or text.startswith(("data:", "event:", "id:", "retry:")):
        attempts = (_as_events,)
    for attempt in attempts:
        try:
            return attempt(text)
        except Odd:
            continue
    return Shown(form="text", root=pieces_of(text))


def bytes_of(body: Shown, limit: int) -> bytes:
    """The bytes again. Raises BadCassette where they would be more than the limit, which is checked first."""
    try:
        match body.form:
            case "bytes":
                data: bytes = body.root
            case "text":
                _within(sum(map(len, body.root)), limit)
                data = "".join(body.root).encode()
            case "json":
                _measured(body, limit)
                data = written(body.root, body.style).encode()
            case "events" | "lines":
                _measured(body, limit)
                data = "".join(_blocks_again(body)).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise BadCassette(f"A body cannot be put together again ({error}).") from error
    _within(len(data), limit)
    return data


def _within(size: int, limit: int) -> None:
    if size > limit:
        raise BadCassette("A body is larger than it says.")


def _measured(body: Shown, limit: int) -> None:
    """A small one cannot become large; the others are measured before they are written."""
    framing = sum(body.pads)
    if body.event is not None and body.form == "events":
        framing += len(body.root) * len(body.event)
    _within(framing, limit)
    if limit > _UNMEASURED or body.style.indent is not None:
        _within(size_written(body.root, body.style, limit * 2), limit * 2)


def _as_json(text: str) -> Shown:
    value = value_of(text)
    return Shown(form="json", root=value, style=style_of(text, value))


def _as_events(text: str) -> Shown:
    newline = "\r\n" if "\r\n" in text else "\n"
    return _as_stream("events", text, newline, list(_cut_after(text, newline * 2)))


def _as_lines(text: str) -> Shown:
    return _as_stream("lines", text, "\n", list(_cut_after(text, "\n")))


def _cut_after(text: str, end: str) -> Iterator[str]:
    start = 0
    while (found := text.find(end, start)) >= 0:
        found += len(end)
        yield text[start:found]
        start = found
    if start < len(text):
        yield text[start:]


@dataclass(frozen=True, slots=True)
class _Block:
    """An event or a line, taken apart."""

    name: str | None
    value: Any
    data: str
    """Its JSON text, without the padding."""
    pad: int


def _as_stream(form: Literal["events", "lines"], text: str, newline: str, blocks: list[str]) -> Shown:
    read = _event if form == "events" else _line
    style, event, begun = PLAIN, None, False
    root: list[Any] = []
    pads: list[int] = []
    plain = 0
    for raw in blocks:
        block = read(raw, newline)
        if block is not None and not begun:
            try:
                style = style_of(block.data, block.value, text)
            except Odd:
                block = None
            else:
                event, begun = _naming(block), True
        if block is not None and _framed(block.value, block.pad, style, event, newline, form) == raw:
            root.append(block.value)
            pads.append(block.pad)
            plain += 1
        else:
            root.append(raw)
    if not plain or plain * 3 < len(blocks):
        raise Odd("most of it is no JSON")
    return Shown(
        form=form,
        root=root,
        style=style,
        event=event,
        newline=newline,
        pads=tuple(pads) if any(pads) else (),
    )


def _event(raw: str, newline: str) -> _Block | None:
    end = newline * 2
    if not raw.endswith(end):
        return None
    lines = raw[: -len(end)].split(newline)
    name = lines.pop(0)[len("event: ") :] if lines[0].startswith("event: ") else None
    if len(lines) != 1 or not lines[0].startswith("data: "):
        return None
    return _block(name, lines[0][len("data: ") :])


def _line(raw: str, newline: str) -> _Block | None:
    return _block(None, raw[:-1]) if raw.endswith(newline) else None


def _block(name: str | None, data: str) -> _Block | None:
    if data[:1] not in ("{", "["):
        return None
    try:
        value = value_of(data)
    except Odd:
        return None
    core = data[:-1].rstrip(" ") + data[-1]
    pad = len(data) - len(core)
    return _Block(name, value, core, pad) if pad <= _MOST_PADDING else None


def _naming(block: _Block) -> str | None:
    if isinstance(block.value, dict) and block.name == block.value.get("type") and block.name is not None:
        return BY_TYPE
    return block.name


def _framed(value: Any, pad: int, style: Style, event: str | None, newline: str, form: Form) -> str:
    data = written(value, style)
    if pad:
        data = data[:-1] + " " * pad + data[-1]
    if form == "lines":
        return data + newline
    name = event
    if event == BY_TYPE:
        name = value.get("type") if isinstance(value, dict) else None
        if not isinstance(name, str):
            return ""
    head = "" if name is None else f"event: {name}{newline}"
    return f"{head}data: {data}{newline}{newline}"


def _blocks_again(body: Shown) -> Iterator[str]:
    pads = iter(body.pads)
    for one in body.root:
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            pad = next(pads, 0)
            yield _framed(one, pad, body.style, body.event, body.newline, body.form)
        else:
            raise TypeError("an event is neither JSON nor text")


def shown_fields(body: Shown) -> dict[str, Any]:
    """As it stands in a step, but for the root; what is usual is left out."""
    fields: dict[str, Any] = {}
    if body.event is not None:
        fields["event"] = body.event
    if body.newline != "\n":
        fields["newline"] = body.newline
    if style := style_fields(body.style):
        fields["style"] = style
    return fields


def shown_in(fields: dict[str, Any], pads: Iterable[Any], data: bytes | None) -> Shown:
    """Back from the fields of a step and of its small print. Raises BadCassette."""
    form = next((name for name in FORMS if name in fields), None)
    if form is None:
        raise BadCassette("A body has a form that this Rewind does not know.")
    if form == "bytes":
        if data is None:
            raise BadCassette("The bytes of a body are missing.")
        return Shown(form="bytes", root=data)
    root, event, newline = fields[form], fields.get("event"), fields.get("newline", "\n")
    spaces = tuple(pads)
    sound = (
        (form == "json" or isinstance(root, list))
        and (form != "text" or all(isinstance(piece, str) for piece in root))
        and (event is None or isinstance(event, str))
        and newline in ("\n", "\r\n")
        and all(type(pad) is int and 0 <= pad <= _MOST_PADDING for pad in spaces)
    )
    if not sound:
        raise BadCassette("A body is not what its form says.")
    style = style_in(fields["style"]) if "style" in fields else PLAIN
    return Shown(form=form, root=root, style=style, event=event, newline=newline, pads=spaces)
