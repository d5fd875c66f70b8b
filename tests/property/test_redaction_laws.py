"""Laws of redaction: whatever the value, however it is split, wherever reads are cut."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rewind.model.http import ResponseHead
from rewind.redaction.redactor import Redactor
from rewind.redaction.scanner import Scanner
from rewind.redaction.secrets import Secrets
from rewind.redaction.values import forms, is_searchable
from rewind.wire.encoding import decode, encode
from support.effort import examples

# What is around a value shares no character with it, so that whatever is found of it was planted.
VALUE = st.text("abcABC0189-_/+=\"\\<é\U0001f511'", min_size=8, max_size=50).filter(
    # JSON text may hold the characters \\" for a quote alone: such a value is found in it before it is complete.
    # And quotes around a value are not part of it.
    lambda value: is_searchable(value) and not re.search(r"""\\["\\/]|^["']|["']$""", value)
)
AROUND = st.text("ωψχφ .,!\n\t}{][:", max_size=30)
FOLDED = re.compile("REDACTEDx*")

Write = Callable[[str], dict[str, Any]]
Read = Callable[[dict[str, Any]], str]

DIALECTS: list[tuple[Write, Read]] = [
    (
        lambda text: {"id": "c-1", "n": 1.5, "choices": [{"index": 0, "delta": {"content": text}}]},
        lambda doc: doc["choices"][0]["delta"]["content"],
    ),
    (
        lambda text: {"type": "content_block_delta", "index": 4, "delta": {"type": "d", "partial_json": text}},
        lambda doc: doc["delta"]["partial_json"],
    ),
    (
        lambda text: {"candidates": [{"content": {"parts": [{"text": text}]}, "index": 1}]},
        lambda doc: doc["candidates"][0]["content"]["parts"][0]["text"],
    ),
    (lambda text: {"type": "response.delta", "sequence_number": len(text), "delta": text}, lambda doc: doc["delta"]),
]
NOISE = [
    b": ping\n\n",
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b'data: {"usage": {"in": 3, "out": [1, 2]}, "other": "\\u03c9\\n"}\n\n',
    b"data: [DONE]\n\n",
]


@st.composite
def pieces_of(draw: st.DrawFn, whole: Any) -> list[Any]:
    """Any cutting of a text or of bytes."""
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=20)))
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, list[str], bytes, Read]:
    """A value, the texts that say it in pieces, the event stream they come in, and how to read it."""
    value = draw(VALUE)
    spoken = draw(AROUND) + value + draw(AROUND) + draw(st.sampled_from(["", value])) + draw(AROUND)
    texts = draw(pieces_of(spoken))
    write, read = draw(st.sampled_from(DIALECTS))
    ascii_only = draw(st.booleans())
    body = b""
    for text in texts:
        body += draw(st.sampled_from([b"", b"", b"", *NOISE]))
        body += b"data: " + json.dumps(write(text), ensure_ascii=ascii_only).encode() + b"\n\n"
    if draw(st.booleans()):
        body = body.replace(b"\n", b"\r\n")
    return value, texts, body, read


def documents(body: bytes) -> list[Any]:
    """The JSON of each event whose line is complete."""
    lines = [line for line in re.split(rb"\r?\n", body)[:-1] if line.startswith(b"data: {")]
    return [json.loads(line[6:]) for line in lines]


def said(docs: list[Any], read: Read) -> list[str]:
    texts = []
    for doc in docs:
        try:
            texts.append(read(doc))
        except (KeyError, TypeError):
            continue
    return texts


def shows(text: str, value: str, count: int = 6) -> bool:
    """Whether so many characters of the value stand there in a row."""
    return any(value[at : at + count] in text for at in range(len(value) - count + 1))


def head(coding: str | None = None) -> ResponseHead:
    headers = (("content-type", "text/event-stream"),) + ((("content-encoding", coding),) if coding else ())
    return ResponseHead(status=200, reason="OK", headers=headers)


@settings(max_examples=examples(150))
@given(answers(), st.data())
def test_a_value_in_pieces_is_never_given_out_and_everything_else_is(
    answer: tuple[str, list[str], bytes, Read], data: st.DataObject
) -> None:
    value, texts, body, read = answer
    assume(not shows("REDACTEDxxxxxxxxxxxx", value))
    redactor = Redactor(Secrets([value])).stream(head())
    given_out = b""
    for piece in data.draw(pieces_of(body)):
        given_out += redactor.feed(piece)
        so_far = "".join(said(documents(given_out), read))
        assert not shows(so_far, value)
        # Unread, a quote that ends a string could be one of the value's.
        assert '"' in value or not shows(given_out.decode("utf-8", "replace"), value)
    given_out += redactor.finish()
    final = given_out if redactor.replacement is None else redactor.replacement
    assert len(given_out) == len(final) == len(body)
    assert not shows("".join(said(documents(given_out), read)), value)

    before, after = documents(body), documents(final)
    whole = "".join(texts)
    assert FOLDED.sub("REDACTED", "".join(said(after, read))) == whole.replace(value, "REDACTED")
    # Apart from the strings that said it, every document is what it was, and every other byte too.
    assert len(before) == len(after)
    assert [len(line) for line in body.split(b"\n")] == [len(line) for line in final.split(b"\n")]
    assert strip(before, read) == strip(after, read)


def strip(docs: list[Any], read: Read) -> list[str]:
    kept = []
    for doc in docs:
        text = json.dumps(doc)
        for spoken in said([doc], read):
            text = text.replace(json.dumps(spoken), '""')
        kept.append(text)
    return kept


@given(answers(), st.data())
def test_the_body_does_not_depend_on_how_reads_were_cut(
    answer: tuple[str, list[str], bytes, Read], data: st.DataObject
) -> None:
    value, _, body, _ = answer
    finals = []
    for pieces in ([body], data.draw(pieces_of(body)), [body[at : at + 1] for at in range(len(body))]):
        redactor = Redactor(Secrets([value])).stream(head())
        given_out = b"".join([*map(redactor.feed, pieces), redactor.finish()])
        finals.append(given_out if redactor.replacement is None else redactor.replacement)
    assert finals[0] == finals[1] == finals[2]


@given(answers(), st.sampled_from(["gzip", "br", "zstd", "deflate"]), st.data())
def test_compression_changes_nothing(
    answer: tuple[str, list[str], bytes, Read], coding: str, data: st.DataObject
) -> None:
    value, _, body, _ = answer
    plain = Redactor(Secrets([value])).stream(head())
    expected = plain.feed(body) + plain.finish()
    expected = expected if plain.replacement is None else plain.replacement
    packed = encode(body, coding)
    redactor = Redactor(Secrets([value])).stream(head(coding))
    given_out = b"".join([*map(redactor.feed, data.draw(pieces_of(packed))), redactor.finish()])
    assert redactor.replacement is not None
    assert redactor.withheld
    assert decode(redactor.replacement, coding) == expected
    assert len(given_out) < len(packed)


@given(st.binary(max_size=400), st.sampled_from(["text/event-stream", "application/json", "text/plain"]), st.data())
def test_bytes_without_a_known_value_are_identical(body: bytes, media: str, data: st.DataObject) -> None:
    redactor = Redactor(Secrets(["sk-proj-0123456789abcdef", "ÿpass-w0rd"])).stream(
        ResponseHead(status=200, reason="OK", headers=(("content-type", media),))
    )
    given_out = b"".join([*map(redactor.feed, data.draw(pieces_of(body))), redactor.finish()])
    assert redactor.replacement is None
    assert given_out == body


@example("000001'\\", "", "", True)
@given(VALUE, AROUND, AROUND, st.booleans())
def test_no_form_of_a_value_survives_in_a_body(value: str, before: str, after: str, in_json: bool) -> None:
    for form in forms(value):
        text = before.encode() + form + after.encode()
        body = json.dumps({"a": text.decode(), "b": 1}).encode() if in_json else text
        scrubbed = Redactor(Secrets([value])).body(body, ())
        assert len(scrubbed) == len(body)
        assert form not in scrubbed
        if in_json:
            assert json.loads(scrubbed)["b"] == 1


@given(
    st.lists(st.text("ab01", min_size=8, max_size=60), min_size=1, max_size=4),
    st.lists(st.one_of(st.text("ab01", max_size=20), st.integers(0, 3)), max_size=12),
)
def test_the_scanner_finds_what_a_plain_search_finds(values: list[str], parts: list[str | int]) -> None:
    text = "".join(part if isinstance(part, str) else values[part % len(values)] for part in parts).encode()
    wanted = [value.encode() for value in values]
    covered = {
        place
        for form in wanted
        for start in range(len(text))
        if text.startswith(form, start)
        for place in range(start, start + len(form))
    }
    spans = Scanner(wanted).find(text)
    assert {place for start, end in spans for place in range(start, end)} == covered
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    pending = max((size for form in wanted for size in range(len(form)) if text.endswith(form[:size])), default=0)
    assert Scanner(wanted).pending(text) == pending
