"""``docs/providers.md`` says what the codecs do, and the examples behind it miss no provider."""

from dataclasses import replace
from pathlib import Path

import pytest

from rewind.model.message import Answered
from rewind.model.step import StepKind
from rewind.model.usage import Usage
from rewind.providers.catalogue import BUILT_IN, identify
from support.provider_table import UNREAD, UNTOLD, YES, claimed, document, equal_streams, read, sections
from support.wire_examples import EXAMPLES, Example

DOCUMENT = Path(__file__).parents[2] / "docs" / "providers.md"

TOLD_TO_NOBODY = (StepKind.NOTE, StepKind.ERROR)
"""What a program writes down of itself is no conversation."""

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.api)


def test_the_file_says_what_the_codecs_do() -> None:
    assert DOCUMENT.read_text() == document(), "Write it anew with the command at its top."


def test_every_provider_of_the_catalogue_has_an_example() -> None:
    shown = [identify(example.request.head) for example in EXAMPLES]
    speaking = [provider for provider in BUILT_IN if provider.kind not in TOLD_TO_NOBODY]
    without = [provider.name for provider in speaking if provider not in shown]
    assert without == [], "Tell the conversation in its words: tests/support/wire_examples."


@each_example
def test_every_path_of_an_example_is_claimed(example: Example) -> None:
    assert list(claimed(read(example))) == list(example.paths)


@each_example
def test_every_stream_of_an_example_is_equal_to_its_whole_twin(example: Example) -> None:
    assert list(equal_streams(read(example))) == [stream.format for stream in example.streams]


@each_example
def test_no_example_leaves_a_note(example: Example) -> None:
    row = read(example)
    assert (row.asked.note, row.answered.note) == (None, None)
    for stream in (*example.streams, *((example.broken,) if example.broken else ())):
        assert row.provider.reader.answered(stream.request, stream.response).note is None


def test_nothing_that_an_example_says_is_lost() -> None:
    lost = [
        f"{row.example.api}: {column.name}"
        for rows, columns in sections().values()
        for row in rows
        for column in columns
        if column.cell(row) == UNREAD
    ]
    assert lost == []


def test_a_codec_that_forgets_something_changes_the_file() -> None:
    rows, columns = sections()["Models: what came back"]
    row = rows[0]
    assert [column.cell(row) for column in columns].count(YES) == len(columns) - 1
    silent = replace(row, answered=Answered())
    cells = {column.name: column.cell(silent) for column in columns}
    assert cells["text"] == cells["thinking"] == cells["tool calls"] == cells["id"] == UNREAD
    assert cells["other choices"] == UNTOLD
    rows, columns = sections()["Models: tokens"]
    uncounted = replace(rows[0], answered=replace(rows[0].answered, usage=Usage(input=5, output=5)))
    assert {column.cell(uncounted) for column in columns} == {UNREAD, UNTOLD}


def test_an_api_without_its_example_is_missing_in_the_file() -> None:
    assert document(EXAMPLES[1:]) != document()
