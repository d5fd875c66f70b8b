"""What also varies among earlier good runs is no surprise in a bad one; what lies outside of it is.

A desk for returns is run a few times. Its tools answer with the days since delivery (3 to 9) and the length of a
queue, which both vary. The provider refunds what is not too old, and now and then draws another decision by lot.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import Result, agent_command, run_rewind
from support.provider import FakeProvider
from support.script import Answer, Request

pytestmark = pytest.mark.e2e

GOOD = ((3, 14), (5, 2), (9, 31), (4, 8), (7, 20), (6, 11))
"""Days and queue of the earlier runs."""

DONE = (
    "Done, your money is on its way.",
    "Your money is on its way back to you.",
    "All done! The money is on its way.",
)


def told(request: Request, tool: str) -> dict[str, Any] | None:
    """What a tool has answered by now."""
    messages = request.json()["messages"]
    names = {call["id"]: call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    found = [one["content"] for one in messages if one["role"] == "tool" and names[one["tool_call_id"]] == tool]
    return json.loads(found[-1]) if found else None


class Desk:
    """Refunds within 30 days, unless it is in a bad mood."""

    refuses = False

    def __call__(self, request: Request) -> Answer:
        order = told(request, "order_of")
        if order is None:
            return self.say(request, calls={"order_of": {"order": "A-17"}, "queue_length": {}})
        if self.refuses or order["days_since_delivery"] > 30:
            return self.say(request, text="I am sorry, we cannot take this order back.")
        if told(request, "refund") is None:
            return self.say(request, calls={"refund": {"order": "A-17"}})
        return self.say(request, text=DONE[request.hit % len(DONE)])

    def say(self, request: Request, *, text: str = "", calls: dict[str, Any] | None = None) -> Answer:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{name}_{request.hit}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for name, arguments in calls.items()
            ]
        finish = "tool_calls" if calls else "stop"
        body = {
            "id": f"chatcmpl-{request.hit}",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o-2024-08-06",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        return Answer(pieces=(json.dumps(body).encode(),))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six good runs, then one with an old order, and one in which the provider drew another decision."""
    home = tmp_path_factory.mktemp("history") / "store"
    desk = Desk()
    with FakeProvider(desk) as provider:

        def record(name: str, days: int, queue: int) -> None:
            env = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-test-0001"}
            words = ["record", "--name", name, "--", *agent_command("returns_desk.py"), f"{days}", f"{queue}"]
            run_rewind(words, home, env, cwd=home.parent).ok()

        for number, (days, queue) in enumerate(GOOD, 1):
            record(f"good-{number}", days, queue)
        record("old-order", 46, 9)
        desk.refuses = True
        record("unlucky", 8, 12)
    return home


def bisected(home: Path, bad: str, *more: str) -> dict[str, Any]:
    result = run_rewind(["bisect", "good-6", bad, "--json", *more], home, cwd=home.parent)
    assert result.code == 1, result.talk
    view: dict[str, Any] = json.loads(result.text)
    return view


def shown(home: Path, bad: str, *more: str) -> Result:
    return run_rewind(["bisect", "good-6", bad, *more], home, {"COLUMNS": "120"}, cwd=home.parent)


def test_a_value_that_varies_and_is_the_cause_stays_first(store: Path) -> None:
    view = bisected(store, "old-order")
    first = view["causes"][0]
    assert first["kind"] == "tool-output"
    assert "46" in first["differences"][0]["after"]
    assert "outside of what 5 good runs had: days_since_delivery 3 to 9" in first["evidence"]
    learnt = {one["reach"]: one for one in view["history"]["learnt"]}
    assert learnt["outside"]["demoted"] is False
    assert learnt["inside"]["seen"] == ["waiting 2 to 31"], "the queue varies, and says nothing"


def test_what_varies_among_good_runs_is_demoted_and_still_listed(store: Path) -> None:
    view = bisected(store, "unlucky")
    kinds = [cause["kind"] for cause in view["causes"]]
    assert kinds[0] == "sampling"
    changed = [one for cause in view["causes"] for one in cause["differences"]]
    assert [one["about"].partition("(")[0] for one in changed] == ["order_of", "queue_length"], "never removed"
    assert [one["demoted"] for one in view["history"]["learnt"]] == [True, True]
    assert len(view["history"]["sessions"]) == 5
    screen = " ".join(shown(store, "unlucky").text.split())
    assert "also varies in 5 good runs: days_since_delivery 3 to 9; waiting 2 to 31" in screen
    assert "5 earlier good runs of this program: 2 differences above also vary there" in screen


def test_without_history_all_stay_where_they_were(store: Path) -> None:
    view = bisected(store, "unlucky", "--no-history")
    assert view["history"] is None
    assert view["causes"][0]["kind"] == "tool-output"


def test_runs_of_files_have_no_history(store: Path) -> None:
    file = store.parent / "unlucky.rw"
    run_rewind(["export", "unlucky", "-o", str(file)], store, cwd=store.parent).ok()
    result = run_rewind(["bisect", "good-6", str(file), "--json"], store, cwd=store.parent)
    assert json.loads(result.text)["history"] is None


def test_a_few_earlier_runs_say_nothing(store: Path) -> None:
    """``good-5`` has only four good runs before it."""
    result = run_rewind(["bisect", "good-4", "good-5", "--json"], store, cwd=store.parent)
    assert json.loads(result.text)["history"] is None
