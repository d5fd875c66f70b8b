"""``docs/editing.md`` says what is so."""

import re
from pathlib import Path

import pytest

from rewind.edit.edits import Edit, StepReference, TextValue, parse_edit
from rewind.providers.api import AnswerContent
from rewind.providers.catalogue import SHAPES
from rewind.providers.shared.speak import content_or_document

DOCS = (Path(__file__).parents[3] / "docs" / "editing.md").read_text()
GRAMMAR, _, REST = DOCS.partition("### What each place means")
EXAMPLES = [
    example
    for row in GRAMMAR.splitlines()
    if row.startswith("| ") and "---" not in row
    for example in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1])
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_an_edit(example: str) -> None:
    edit = parse_edit(example)
    assert edit.written == example
    assert isinstance(edit.value, StepReference if "=@" in example and "=@@" not in example else TextValue)


def test_every_kind_of_edit_has_an_example() -> None:
    found = {type(parse_edit(example)) for example in EXAMPLES}
    assert found == set(Edit.__args__)


def test_the_ways_to_call_a_tool_are_read_as_such() -> None:
    shown = re.findall(r"\| `(\{.+?\})` \|", REST)
    assert len(shown) == 2
    for value in shown:
        said = content_or_document(value, b"", by_model=True)
        assert isinstance(said, AnswerContent)
        assert [(use.name, use.arguments) for use in said.tools] == [("search", {"q": "oslo"})]


def test_every_shape_has_its_row() -> None:
    assert re.findall(r"^\| `(\w+)` \| `", REST, re.MULTILINE) == list(SHAPES)
