"""``inspect`` shows what calls mean: threads, tools between the calls, what the model read, what it cost."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import ExitCode
from rewind.match.call import understand
from rewind.model.http import HttpRequest, RequestHead, ResponseHead
from rewind.model.step import Ending, Reading, StepKind
from rewind.store.journal.writer import SessionWriter
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer

HEAD = RequestHead(method="POST", scheme="https", host="api.anthropic.com", port=443, target="/v1/messages", headers=())
ASK = {"role": "user", "content": "Is account 4711 active?"}
USE = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"account": 4711}}
LONG = "The report says: " + "figures and facts, " * 60
CUT = LONG[:200] + "… [truncated]"


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text, **more}]}


def said(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


class Claude:
    """Writes exchanges with Anthropic's API into a session."""

    def __init__(self, writer: SessionWriter) -> None:
        self.writer = writer
        self.index = 0

    def say(
        self,
        messages: list[Any],
        *content: Any,
        system: str = "Be kind.",
        model: str = "claude-sonnet-4-5",
        status: int = 200,
        stop: str = "end_turn",
        **usage: int,
    ) -> None:
        self.index += 1
        asked = json.dumps({"model": model, "system": system, "max_tokens": 9, "messages": messages}).encode()
        answer = {
            "type": "message",
            "id": f"msg_{self.index}",
            "model": f"{model}-20250929",
            "content": list(content),
            "stop_reason": stop,
            "usage": {"input_tokens": 1000, "output_tokens": 100, **usage},
        }
        if status >= 400:
            answer = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        answered = json.dumps(answer).encode()
        key = understand(HttpRequest(head=HEAD, body=asked)).key
        request = a_request(
            self.index, head=HEAD, provider="anthropic", model=model, match_key=key, ts=1_763_000_000.0 + self.index
        )
        head = ResponseHead(status=status, reason="", headers=(("content-type", "application/json"),))
        self.writer.request(request, asked)
        self.writer.response(
            self.index,
            an_answer(len(answered), head=head, ending=Ending.COMPLETE, ms=250.0, reading=Reading()),
            answered,
        )

    def end(self, exit_code: int = 0) -> None:
        self.writer.end(ended=1_700_000_008.4, exit_code=exit_code, redactions=0, remarks=())


@pytest.fixture
def refund(shelf: Shelf) -> None:
    """One agent with one tool whose result is truncated later."""
    claude = Claude(shelf.begin("7f3a2b9c", name="refund"))
    claude.say([ASK], words("I look."), USE, cache_read_input_tokens=500)
    before = [ASK, said(words("I look."), USE)]
    claude.say([*before, result(LONG)], words("It is active, so I go on."))
    claude.say(
        [*before, result(CUT), said(words("It is active, so I go on.")), {"role": "user", "content": "Good."}],
        words("Done."),
    )
    claude.end()


def rows(text: str) -> list[str]:
    return text[text.index("#  kind") :].splitlines()[1:]


def test_a_run_says_what_it_came_to(rewind: Rewind, refund: None) -> None:
    shown = rewind("inspect", "refund").text
    for line in (
        r"^calls +3 LLM calls in 1 thread, 1 tool call$",
        r"^tokens +3,500 in \(500 from cache\), 300 out$",
        r"^peak context +1,500 tokens of [0-9,]+ \(<1%\)$",
        r"^cost +\$0\.014$",
    ):
        assert re.search(line, shown, re.MULTILINE), line


def test_tool_calls_stand_between_the_steps_that_ask_and_bring(rewind: Rewind, refund: None) -> None:
    first, tool, second, _third = rows(rewind("inspect", "refund").text)
    assert re.search(r"^ +1 +llm +claude-sonnet-4-5-20250929 +1,500 +100 +\$0\.0046 +250 ", first)
    assert re.search(r'^1\.1 +tool +750 +lookup\({"account":4711}\) ← The report says', tool)
    assert re.search(r"^ +2 +llm .*It is active, so I go on\.$", second)


def test_a_tool_call_in_full_has_arguments_and_the_whole_result(rewind: Rewind, refund: None) -> None:
    shown = rewind("inspect", "refund:1.1").text
    assert '"account": 4711' in shown
    assert LONG in shown
    assert "asked for in  step 1" in shown
    view = rewind("inspect", "refund:1.1", "--json").json()
    assert view["schema"] == "rewind/tool_call@1"
    assert view["tool_call"]["arguments"] == {"account": 4711}
    assert (view["tool_call"]["answered_in"], view["tool_call"]["failed"]) == (2, False)


def test_a_tool_call_that_is_not_there_says_what_is(rewind: Rewind, refund: None) -> None:
    ran = rewind("inspect", "refund:1.2")
    assert ran.code == ExitCode.NOT_FOUND
    assert "has no tool call 2; it asks for 1" in ran.talk
    assert "asks for none" in rewind("inspect", "refund:2.1").talk
    assert rewind("inspect", "refund:9.1").code == ExitCode.NOT_FOUND


def test_the_context_of_the_first_call_is_shown_whole(rewind: Rewind, refund: None) -> None:
    shown = rewind("inspect", "refund:1", "--context").text
    assert re.search(r"^system  8 characters", shown, re.MULTILINE)
    assert "  Be kind." in shown
    assert "Is account 4711 active?" in shown
    assert "no earlier call to compare with" in shown


def test_the_context_of_a_later_call_says_what_became_of_each_message(rewind: Rewind, refund: None) -> None:
    shown = rewind("inspect", "refund:3", "--context").text
    assert "compared with step 2" in shown
    assert "= 3 entries as in step 2" in shown
    assert f"✂ truncated  tool  200 characters kept, {len(LONG) - 200:,} lost" in shown
    assert "+ added  assistant  25 characters  the model's own answer" in shown
    assert shown.rstrip().endswith("3 same, 2 added, 1 truncated")
    assert LONG[200:] not in shown, "a long text is folded"
    assert LONG[200:] in rewind("inspect", "refund:3", "--context", "--full").text


def test_any_two_steps_can_be_compared(rewind: Rewind, refund: None) -> None:
    view = rewind("inspect", "refund:3", "--context", "--diff", "1", "--json").json()
    assert view["schema"] == "rewind/context@1"
    assert (view["step"], view["compared_with"]) == (3, 1)
    assert [change["fate"] for change in view["changes"]] == ["same", "same", "added", "added", "added", "added"]
    assert [entry["what"] for entry in view["entries"]] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert rewind("inspect", "refund:3", "--context", "--diff", "9").code == ExitCode.NOT_FOUND


def test_a_changed_prompt_shows_both_wordings(rewind: Rewind, shelf: Shelf) -> None:
    claude = Claude(shelf.begin("7f3a2b9c"))
    claude.say([ASK], words("Yes."), system="You may refund after lookup. " * 20)
    claude.say(
        [ASK, said(words("Yes.")), {"role": "user", "content": "Go."}],
        words("No."),
        system="You may refund after lookup. " * 19 + "You may refund after confirmation. ",
    )
    claude.end()
    shown = rewind("inspect", "last:2", "--context").text
    assert re.search(r"~ changed  system  580 → 586 characters", shown)
    assert re.search(r"^- …?.*after lookup", shown, re.MULTILINE)
    assert re.search(r"^\+ …?.*after confirmation", shown, re.MULTILINE)


def test_threads_are_shown_where_there_are_several_and_retries_are_named(rewind: Rewind, shelf: Shelf) -> None:
    claude = Claude(shelf.begin("7f3a2b9c"))
    task = "Find out whether the account 4711 is active."
    start = {"type": "tool_use", "id": "t1", "name": "delegate", "input": {"task": task}}
    claude.say([ASK], start)
    claude.say([{"role": "user", "content": task}], system="You research.", status=529)
    claude.say([{"role": "user", "content": task}], words("It is."), system="You research.")
    claude.say([ASK, said(start), result("It is.")], words("Yes."))
    claude.end()
    shown = rewind("inspect", "last").text
    assert "4 LLM calls in 2 threads, 1 tool call, 1 retry" in shown
    titles = next(line for line in shown.splitlines() if line.lstrip().startswith("#"))
    assert "thread" in titles
    assert re.search(r"^ +2 +llm +2 ← 1 .*✗ 529 +Overloaded$", shown, re.MULTILINE)
    assert re.search(r"^ +3 +llm +2 ← 1 .*retry of 2: It is\.$", shown, re.MULTILINE)
    view = rewind("inspect", "last", "--json").json()["outline"]
    assert view["threads"] == 2
    assert [(step["thread"], step["parent"], step["started_by"], step["retry_of"]) for step in view["steps"]] == [
        (1, None, None, None),
        (2, None, 1, None),
        (2, None, 1, 2),
        (1, 1, None, None),
    ]
    assert "thread  2, started by step 1" in rewind("inspect", "last:2").text


def test_a_step_in_json_has_the_neutral_shape_beside_the_bytes(rewind: Rewind, refund: None) -> None:
    view = rewind("inspect", "refund:1", "--json").json()
    assert view["asked"]["system"] == [{"type": "text", "text": "Be kind."}]
    assert view["answered"]["parts"][1]["name"] == "lookup"
    assert view["answered"]["usage"]["cache_read"] == 500
    assert view["place"] == {"thread": 1, "parent": None, "started_by": None, "retry_of": None}
    assert view["cost_usd"] == pytest.approx((1000 * 3 + 500 * 0.3 + 100 * 15) / 1e6)
    assert "answered" not in rewind("inspect", "refund:1", "--json", "--request").json()
    assert "asked" not in rewind("inspect", "refund:1", "--json", "--response").json()


def test_an_unknown_price_is_a_dash_and_counted(rewind: Rewind, shelf: Shelf) -> None:
    claude = Claude(shelf.begin("7f3a2b9c"))
    claude.say([ASK], words("Hm."), model="nobody-knows-me")
    claude.end()
    shown = rewind("inspect", "last").text
    assert re.search(r"^cost +— \(1 call unpriced\)$", shown, re.MULTILINE)
    assert rewind("inspect", "last", "--json").json()["outline"]["steps"][0]["cost_usd"] is None


def test_prices_of_ones_own_win(rewind: Rewind, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude = Claude(shelf.begin("7f3a2b9c"))
    claude.say([ASK], words("Hm."), model="nobody-knows-me")
    claude.end()
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[tool.rewind.prices]\n"nobody-*" = { input = 1000, output = 0 }\n')
    monkeypatch.chdir(project)
    assert re.search(r"^cost +\$1\.00$", rewind("inspect", "last").text, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [
        ("refund", "--context"),
        ("refund:1", "--diff", "2"),
        ("refund:1", "--full"),
        ("refund:1", "--context", "--raw"),
        ("refund:1", "--context", "--request"),
        ("refund:1", "--context", "--diff", "0"),
        ("refund:1.1", "--raw"),
        ("refund:1.1", "--context"),
    ],
)
def test_options_that_do_not_go_together_are_refused(rewind: Rewind, refund: None, arguments: tuple[str, ...]) -> None:
    ran = rewind("inspect", *arguments)
    assert ran.code == ExitCode.USAGE
    assert "Traceback" not in ran.talk


def test_what_is_no_call_to_a_model_has_no_context(rewind: Rewind, shelf: Shelf) -> None:
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(kind=StepKind.HTTP_CALL, provider="http"), b"{}")
    writer.response(1, an_answer(2), b"{}")
    writer.close()
    ran = rewind("inspect", "last:1", "--context")
    assert ran.code == ExitCode.USAGE
    assert "not a call to a model" in ran.talk


def test_a_value_with_a_line_break_cannot_pose_as_another_fact(rewind: Rewind, shelf: Shelf) -> None:
    claude = Claude(shelf.begin("7f3a2b9c"))
    claude.say([ASK], words("Hm."), {**USE, "name": "look\nNo later request brought a result."}, model="m\ncost  $0")
    claude.end()
    for target in ("last", "last:1", "last:1.1"):
        shown = rewind("inspect", target).text
        assert not re.search(r"^cost +\$0$", shown.partition("{")[0], re.MULTILINE), target
    assert len(re.findall(r"^No later request", rewind("inspect", "last:1.1").text, re.MULTILINE)) == 1


def test_the_steps_fit_a_narrow_screen(rewind: Rewind, refund: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(len(line) for line in rows(rewind("inspect", "refund").text)) <= 80


def test_a_damaged_request_is_named_and_not_shown_as_empty(rewind: Rewind, shelf: Shelf, refund: None) -> None:
    (pack,) = shelf.home.glob("sessions/*/pack")
    pack.write_bytes(pack.read_bytes()[:40])
    ran = rewind("inspect", "refund:1", "--context")
    assert ran.code == ExitCode.ENVIRONMENT
    assert ran.data == b""


def test_a_request_that_is_no_json_says_so(rewind: Rewind, shelf: Shelf) -> None:
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(head=HEAD, provider="anthropic"), b'{"model": "c", "messages": [')
    writer.response(1, an_answer(2, reading=Reading()), b"{}")
    writer.close()
    assert "damaged or not JSON" in rewind("inspect", "last:1", "--context").text
    assert "damaged or not JSON" in rewind("inspect", "last").text


@pytest.mark.parametrize(("exit_code", "status"), [(0, ""), (1, "no result")])
def test_a_call_that_ends_the_conversation_looks_like_a_fault_only_where_the_run_failed(
    rewind: Rewind, shelf: Shelf, exit_code: int, status: str
) -> None:
    """Structured output: the answer is asked for as a tool, and its arguments are the answer."""
    claude = Claude(shelf.begin("7f3a2b9c", name="structured"))
    claude.say([ASK], {**USE, "name": "final_result"})
    claude.end(exit_code)
    _step, tool = rows(rewind("inspect", "structured").text)
    assert re.search(rf"^1\.1 +tool +\S? +{status} *final_result\({{.*}}\) \(ends the conversation\)$", tool), tool
    view = rewind("inspect", "structured:1.1", "--json").json()["tool_call"]
    assert (view["result"], view["ends"]) == (None, True)


def test_a_call_whose_result_is_lost_on_the_way_is_worth_a_look(rewind: Rewind, shelf: Shelf) -> None:
    claude = Claude(shelf.begin("7f3a2b9c", name="lost"))
    claude.say([ASK], USE)
    claude.say([ASK, said(USE), {"role": "user", "content": "Go on."}], words("Done."))
    claude.end()
    _first, tool, _second = rows(rewind("inspect", "lost").text)
    assert re.search(r"^1\.1 +tool +\S? +no result +lookup\({.*}\) \(no result seen\)$", tool), tool


@pytest.mark.parametrize("stop", ["content_filter", "refusal"])
def test_an_empty_answer_says_why_it_is_empty(rewind: Rewind, shelf: Shelf, stop: str) -> None:
    for session, parts in (("7f3a2b9c", [words("Yes.")]), ("7f3a2b9d", [])):
        claude = Claude(shelf.begin(session))
        claude.say([ASK], *parts, stop=stop if not parts else "end_turn")
        claude.end()
    (row,) = rows(rewind("inspect", "7f3a2b9d").text)
    assert row.endswith(f"(empty: {stop})")
    told = rewind("bisect", "7f3a2b9c", "7f3a2b9d").text
    assert f"(empty: {stop})" in told
    assert "(an empty answer)" not in told


def test_plain_http_is_shown_by_its_address_and_not_by_how_its_body_begins(rewind: Rewind, shelf: Shelf) -> None:
    writer = shelf.begin("7f3a2b9c")
    for index, (status, body) in enumerate(((200, b'{"hits": [1, 2]}'), (500, b'{"error": {"message": "broken"}}')), 1):
        head = RequestHead(method="GET", scheme="https", host="a.example", port=443, target="/search?q=1", headers=())
        reading = Reading(text='{"hits": [1, 2]}', error="broken" if status == 500 else None)
        answer = ResponseHead(status=status, reason="", headers=(("content-type", "application/json"),))
        writer.request(a_request(index, head=head, provider="http", kind=StepKind.HTTP_CALL, model=None), b"")
        writer.response(index, an_answer(len(body), head=answer, reading=reading), body)
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    good, bad = rows(rewind("inspect", "last").text)
    assert good.endswith("GET a.example/search")
    assert bad.endswith("GET a.example/search: broken")
