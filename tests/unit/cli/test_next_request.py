"""What is shown at a stop: what is new in the request, and what the recording will answer."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewind.cli.screens.terminal import Terminal
from rewind.cli.step_prompt import print_next_request, print_request
from rewind.errors import SessionNotFound, UsageError
from rewind.match.call import Call, understand
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.ids import MatchKey
from rewind.model.step import StepKind
from rewind.reading.next_request import NextRequest, next_request, recorded_outline
from rewind.runs.stepped_replay import check_step
from rewind.store.library import Library
from rewind.views import call as views
from unit.cli.shelf import Shelf, a_request, an_answer
from unit.cli.talks import Talk, begin, refund


def at(home: Path, index: int, **changes: Any) -> tuple[NextRequest, int]:
    """The agent sends what was recorded as that step, with these changes to it; and how many steps there are."""
    library = Library(home)
    session = library.find("last")
    with library.open(session) as reader:
        steps = reader.recording().steps
        step = next(one for one in steps if one.index == index)
        request = HttpRequest(head=step.request.head, body=reader.blob(step.request.body))
    call: Call = understand(replace(request, **changes))
    return next_request(call, index, recorded_outline(home, session)), len(steps)


def shown(home: Path, index: int, *, drifted: bool = False, **changes: Any) -> list[str]:
    stream = io.StringIO()
    one, total = at(home, index, **changes)
    print_next_request(Terminal(stream), one, total, drifted=drifted)
    return stream.getvalue().splitlines()


@pytest.fixture
def talk(shelf: Shelf) -> Talk:
    one = refund(begin(shelf, "7f3a2b9c"))
    one.end()
    return one


def test_what_goes_on_from_an_earlier_call_is_shown_by_what_is_new(talk: Talk, home: Path) -> None:
    assert shown(home, 2) == [
        "before step 2 of 3  llm_call  claude-sonnet-4-6",
        "to            POST https://api.anthropic.com/v1/messages",
        "parameters    max_tokens 1024, temperature 0",
        "size          3 messages, 2 tools, 884 bytes",
        "goes on from  step 1",
        "",
        "= 3 entries as in step 1",
        "",
        "+ added  assistant  66 characters  the model's own answer  messages[1]",
        "  Understood, I'll look into the account.",
        '  → lookup({"order":"8821"})',
        "",
        "+ added  tool  61 characters  messages[2]",
        '  {"customer": "C-1041", "status": "active", "balance": 1240.0}',
        "",
        "3 same, 2 added",
        "",
        "the recording answers  200  1,000 tokens in, 100 out",
        '  → refund({"order":"8821","amount":189.0})',
    ]


def test_of_the_first_call_all_is_shown(talk: Talk, home: Path) -> None:
    lines = shown(home, 1)
    assert lines[0] == "before step 1 of 3  llm_call  claude-sonnet-4-6"
    assert not any("goes on from" in line for line in lines)
    assert "  I want my money back for order 8821." in lines
    assert any(line.startswith("3 entries, ") for line in lines)


def test_a_call_that_no_model_answers_is_shown_as_it_is(shelf: Shelf, home: Path) -> None:
    writer = shelf.begin("7f3a2b9c")
    head = RequestHead(method="PUT", scheme="https", host="db.example", port=443, target="/orders/8821", headers=())
    half = a_request(1, head=head, kind=StepKind.HTTP_CALL, provider="http", model=None)
    writer.request(half, b'{"status":"\x1b[31mpaid"}')
    writer.response(1, an_answer(2), b"{}")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    lines = shown(home, 1)
    assert lines[:3] == ["before step 1 of 1  http_call", "to    PUT https://db.example/orders/8821", "size  22 bytes"]
    assert lines[4] == '{"status":"\\x1b[31mpaid"}', "it cannot steer the terminal"
    assert lines[6] == "the recording answers  200  1,200 tokens in, 34 out"


def test_drift_and_the_edit_of_a_fork_are_told(shelf: Shelf, home: Path) -> None:
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(1, asked_key=MatchKey("rw1:asked")), b"{}")
    writer.response(1, an_answer(2), b"{}")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    lines = shown(home, 1, drifted=True)
    assert "drift   differs from the recorded step 1, and is accepted for it" in lines
    assert "edited  this fork changed it on its way out; this is what the agent sends" in lines


def test_the_whole_request_is_shown_as_json_with_what_was_kept_of_its_head(talk: Talk, home: Path) -> None:
    stream = io.StringIO()
    one, _ = at(home, 1)
    print_request(Terminal(stream), one)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "POST https://api.anthropic.com/v1/messages"
    assert '  "model": "claude-sonnet-4-6",' in lines


def test_a_body_that_is_no_json_is_shown_as_text_or_counted(talk: Talk, home: Path) -> None:
    for body, line in ((b"plain words", "plain words"), (b"\xff\xfe\x00", "3 bytes that are not text")):
        stream = io.StringIO()
        print_request(Terminal(stream), at(home, 1, body=body)[0])
        assert stream.getvalue().splitlines()[-1] == line


def test_as_json_it_has_the_members_of_a_context_and_what_else_is_sent(talk: Talk, home: Path) -> None:
    view = views.next_request("7f3a2b9c", at(home, 3)[0])
    assert (view["step"], view["compared_with"], view["kind"]) == (3, 2, "llm_call")
    assert view["url"] == "https://api.anthropic.com/v1/messages"
    assert view["parameters"] == {"max_tokens": 1024, "temperature": 0}
    assert view["recorded"]["text"] == "Done: $189.00 is on its way back to you."
    assert {change["fate"] for change in view["changes"]} == {"same", "added"}


# Which steps can be stopped at


def test_a_step_without_an_answer_is_one_that_no_replay_comes_to(shelf: Shelf, home: Path) -> None:
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(1), b"{}")
    writer.response(1, an_answer(2), b"{}")
    writer.request(a_request(2), b"{}")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    library = Library(home)
    with library.open(library.find("last")) as reader:
        recording = reader.recording()
    check_step(recording, 1)
    with pytest.raises(UsageError, match="Step 2 of session 7f3a2b9c was never answered"):
        check_step(recording, 2)
    with pytest.raises(SessionNotFound, match="it has 2, from 1 to 2"):
        check_step(recording, 3)
