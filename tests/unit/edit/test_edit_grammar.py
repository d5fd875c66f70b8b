"""Every row of the grammar, read and written back."""

import pytest

from rewind.edit.edits import (
    AppendSystem,
    Edit,
    SetMessage,
    SetModel,
    SetParameter,
    SetResponse,
    SetSystem,
    SetToolResult,
    StepReference,
    TextValue,
    parse_edit,
)
from rewind.errors import UsageError

ROWS: list[tuple[str, Edit]] = [
    ("system=Be brief.", SetSystem(TextValue("Be brief."))),
    ("system=a=b", SetSystem(TextValue("a=b"))),
    ("system=", SetSystem(TextValue(""))),
    ("system=two\nlines", SetSystem(TextValue("two\nlines"))),
    ("system+=Be brief.", AppendSystem(TextValue("Be brief."))),
    ("model=model-y", SetModel(TextValue("model-y"))),
    ("temperature=0", SetParameter(("temperature",), TextValue("0"))),
    ("generationConfig.temperature=0.2", SetParameter(("generationConfig", "temperature"), TextValue("0.2"))),
    ('tool_choice={"type":"auto"}', SetParameter(("tool_choice",), TextValue('{"type":"auto"}'))),
    ("top_p=", SetParameter(("top_p",), TextValue(""))),
    ("response_format=json", SetParameter(("response_format",), TextValue("json"))),
    ("messages[0]=Hello", SetMessage(0, TextValue("Hello"))),
    ("messages[-1]=Hello", SetMessage(-1, TextValue("Hello"))),
    ("tool.search.result=nothing", SetToolResult("search", TextValue("nothing"))),
    ("tool.search.result=", SetToolResult("search", TextValue(""))),
    ("tool.mcp.files.read.result=x", SetToolResult("mcp.files.read", TextValue("x"))),
    ("response=Done.", SetResponse(TextValue("Done."))),
    ("system=@7f3a:4", SetSystem(StepReference("7f3a", 4))),
    ("system+=@last~1:4", AppendSystem(StepReference("last~1", 4))),
    ("model=@good run:12", SetModel(StepReference("good run", 12))),
    ("temperature=@7f3a:4", SetParameter(("temperature",), StepReference("7f3a", 4))),
    ("messages[2]=@7f3a:4", SetMessage(2, StepReference("7f3a", 4))),
    ("tool.search.result=@7f3a:4", SetToolResult("search", StepReference("7f3a", 4))),
    ("response=@a:b:4", SetResponse(StepReference("a:b", 4))),
    ("system=@@everyone, listen", SetSystem(TextValue("@everyone, listen"))),
    ("system=@@@twice", SetSystem(TextValue("@@twice"))),
]


@pytest.mark.parametrize(("text", "edit"), ROWS)
def test_every_row_is_read(text: str, edit: Edit) -> None:
    assert parse_edit(text) == edit


@pytest.mark.parametrize("text", [text for text, _ in ROWS])
def test_an_edit_gives_its_text_back(text: str) -> None:
    assert parse_edit(text).written == text


def test_a_long_value_is_kept_whole() -> None:
    prompt = "word " * 20_000
    assert parse_edit(f"system={prompt}").written == f"system={prompt}"


def test_spaces_around_the_place_do_not_count() -> None:
    assert parse_edit(" temperature =0") == SetParameter(("temperature",), TextValue("0"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a valid edit"),
        ("temperature", "is not a valid edit"),
        ("=0", "is not a valid edit"),
        ("model=", "has no value"),
        ("system+=", "has no value"),
        ("messages[0]=", "has no value"),
        ("temperature+=1", "only the system prompt"),
        ("messages[first]=x", "by its number"),
        ("messages[]=x", "by its number"),
        ("contents[0]=x", "by its number"),
        ("tool.search=x", "only its result"),
        ("tool.=x", "only its result"),
        ("a..b=1", "is not a valid name of a parameter"),
        ("stop[0]=1", "is not a valid name of a parameter"),
        ("two words=1", "is not a valid name of a parameter"),
        ("system=@7f3a", "@SESSION:STEP"),
        ("system=@:4", "@SESSION:STEP"),
        ("system=@7f3a:x", "@SESSION:STEP"),
        ("system=@", "@SESSION:STEP"),
    ],
)
def test_what_is_no_edit_is_refused_with_the_forms_that_are(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        parse_edit(text)
    assert refused.value.hint
    assert "\n" not in refused.value.message


def test_a_long_text_is_not_repeated_in_the_error() -> None:
    with pytest.raises(UsageError) as refused:
        parse_edit("x" * 10_000)
    assert len(refused.value.message) < 200
