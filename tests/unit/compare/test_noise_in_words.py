"""Models never repeat themselves: what is decided makes runs part, not how it is worded."""

from typing import Any

import pytest

from rewind.compare.align import align
from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding, PartingWeight, bisect
from rewind.compare.phrases import folded_text
from rewind.compare.tool_effects import only_reads
from rewind.model.message import ToolUse
from rewind.model.step import Ending
from unit.compare.chats import Calls, Chat, Tape

Turn = tuple[str, Calls]


def played(*turns: Turn, tape: Tape | None = None, **chat: Any) -> Tape:
    """An agent that is told what to do once, and whose tools all answer by their name."""
    tape = tape or Tape()
    one = Chat(tape, **chat).user("Do your work.")
    for words, calls in turns:
        one.says(words, calls)
        if calls:
            one.results(*(f"result of {name} {sorted(map(str, arguments.values()))[:1]}" for name, arguments in calls))
    return tape


def weights(finding: Finding) -> list[tuple[tuple[int | None, int | None], PartingWeight]]:
    return [(one.row.indexes, one.weight) for one in finding.partings]


def read(path: str) -> Turn:
    return f"I look at {path}.", [("read_file", {"path": path})]


def edit(path: str) -> Turn:
    return f"I change {path}.", [("edit_file", {"path": path, "line": 3})]


DONE: Turn = ("All files are mended now.", [])


def test_a_query_in_other_words_is_no_parting() -> None:
    good = played(("Let me see.", [("search", {"q": "refund policy"})]), ("You have 28 days.", []))
    bad = played(("Let me see.", [("search", {"q": "policy for refunds"})]), ("You have 28 days.", []))
    finding = bisect(good.run(), bad.run())
    assert not finding.diverges
    assert weights(finding) == [((1, 1), PartingWeight.PROSE)]
    assert folded_text(finding) == "1 tool call worded otherwise"


def test_a_reworded_last_answer_is_no_parting_and_a_changed_fact_is_one() -> None:
    first = played(("It is 28 days, says the handbook.", []))
    assert not bisect(first.run(), played(("According to the handbook, you get 28 days.", [])).run()).diverges
    finding = bisect(first.run(), played(("According to the handbook, you get 24 days.", [])).run())
    assert finding.step == (1, 1) and finding.parting is not None
    assert "28 → 24" in str(finding.parting.changes[0])


def test_the_same_tool_twice_in_another_order_is_no_parting() -> None:
    calls = [("read_file", {"path": "x"}), ("read_file", {"path": "y"})]
    good, bad = played(("", calls), DONE), played(("", calls[::-1]), DONE)
    assert not bisect(good.run(), bad.run()).diverges


def test_an_extra_read_is_told_and_the_runs_are_in_step_again_behind_it() -> None:
    good = played(read("a"), edit("b"), DONE)
    bad = played(read("a"), read("extra"), edit("b"), DONE)
    finding = bisect(good.run(), bad.run())
    assert [row.indexes for row in finding.comparison.rows] == [(1, 1), (None, 2), (2, 3), (3, 4)]
    assert not finding.diverges and weights(finding) == [((None, 2), PartingWeight.EXTRA)]
    assert folded_text(finding) == "1 extra read, re-sync at step 2 / 3"


def test_a_read_that_is_made_twice_is_extra_in_either_run() -> None:
    once, twice = played(read("a"), edit("b"), DONE), played(read("a"), read("a"), edit("b"), DONE)
    assert not bisect(once.run(), twice.run()).diverges
    assert not bisect(twice.run(), once.run()).diverges


def test_a_read_that_the_bad_run_leaves_out_is_a_parting_where_it_was_due() -> None:
    finding = bisect(played(read("a"), read("b"), edit("c"), DONE).run(), played(read("a"), edit("c"), DONE).run())
    assert finding.step == (2, 2)


def test_a_call_more_that_changes_something_is_a_parting() -> None:
    finding = bisect(played(read("a"), DONE).run(), played(read("a"), edit("b"), DONE).run())
    assert finding.step == (2, 2)


def test_runs_that_read_on_and_on_have_parted() -> None:
    more = [read(f"extra{number}") for number in range(5)]
    finding = bisect(played(read("a"), edit("b"), DONE).run(), played(read("a"), *more, edit("b"), DONE).run())
    assert finding.step == (2, 2)


def test_a_long_chain_of_reworded_calls_stays_in_step_around_an_extra_one() -> None:
    def chain(way: str, extra: bool) -> Tape:
        turns = []
        for number in range(60):
            turns.append((f"{way} {number}", [("edit_file", {"path": f"f{number}", "why": f"{way} in file {number}"})]))
            if extra and number == 30:
                turns.append((f"{way} again", [("read_file", {"path": "f7"})]))
        return played(*turns, DONE)

    rows = align(chain("Now I mend it", False).run(), chain("On to the next place", True).run()).rows
    expected = [*((n, n) for n in range(1, 32)), (None, 32), *((n, n + 1) for n in range(32, 62))]
    assert [row.indexes for row in rows] == expected


def test_what_came_before_the_parting_is_folded_into_a_line() -> None:
    good = played(read("a"), ("Searching.", [("search", {"q": "all callers of it"})]), edit("b"), edit("c"), DONE)
    bad = played(
        ("Let me open a.", [("read_file", {"path": "a"})]),
        ("Hm.", [("search", {"q": "who calls it at all"})]),
        ("Once more.", [("read_file", {"path": "a"})]),
        edit("b"),
        edit("d"),
        DONE,
    )
    finding = bisect(good.run(), bad.run())
    assert finding.step == (4, 5)
    expected = "1 answer reworded, 1 tool call worded otherwise, 1 extra read, re-sync at step 3 / 4"
    assert folded_text(finding) == expected
    assert [one.weight for one in finding.partings][-1] is PartingWeight.DECISIVE


# ── which conversation is which ──────────────────────────────────────────────────────────────────────────────────


def test_equal_words_to_two_models_in_another_order_are_the_same_run() -> None:
    tapes = Tape(), Tape()
    models = {"claude-sonnet-4-6": "Blue, I would say.", "claude-haiku-4-5": "It is 7 green ones."}
    for tape, order in zip(tapes, (list(models), list(models)[::-1]), strict=True):
        for model in order:
            Chat(tape, model=model).user("What colour?").says(models[model])
    finding = bisect(tapes[0].run(), tapes[1].run())
    assert not finding.diverges and not finding.partings
    assert all(finding.comparison.relation(row).alike for row in finding.comparison.rows)


def test_sub_agents_that_were_told_the_same_in_other_words_are_paired_by_what_they_are_about() -> None:
    told = {
        "harbours": ("Find out all about harbours in Norway.", "Norway: report on its harbours, please."),
        "forests": ("Find out all about forests in Chile.", "Chile: report on its forests, please."),
        "glaciers": ("Find out all about glaciers in Nepal.", "Nepal: report on its glaciers, please."),
    }
    tapes = Tape(), Tape()
    for way, (tape, order) in enumerate(zip(tapes, (list(told), list(told)[::-1]), strict=True)):
        for what in order:
            Chat(tape, system="You research.").user(told[what][way]).says(f"There is much to say about {what}.")
    rows = align(tapes[0].run(), tapes[1].run()).rows
    assert sorted(row.indexes for row in rows) == [(1, 3), (2, 2), (3, 1)]


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_that_the_client_hung_up_on_is_a_failure_that_was_tried_again() -> None:
    bad = Tape()
    chat = Chat(bad).user("Do your work.").fails(429, "Slow down", ending=Ending.CLIENT_CLOSED)
    chat.says(DONE[0])
    finding = bisect(played(DONE).run(), bad.run())
    assert not finding.diverges and weights(finding) == [((1, 2), PartingWeight.RETRIED)]


def test_a_failure_that_nobody_tried_again_is_told_by_its_status() -> None:
    bad = Tape()
    Chat(bad).user("Do your work.").fails(429, "Slow down", ending=Ending.CLIENT_CLOSED)
    finding = bisect(played(DONE).run(), bad.run())
    assert finding.causes[0].kind is CauseKind.ERROR
    assert finding.causes[0].differences[0].after == "429"


def test_another_model_that_was_asked_after_failures_makes_the_same_move() -> None:
    bad = Tape()
    chat = Chat(bad).user("Do your work.").fails().fails()
    chat.model = "claude-haiku-4-5"
    chat.says("I will not do that.")
    finding = bisect(played(DONE).run(), bad.run())
    assert finding.step == (1, 3) and finding.causes[0].kind is CauseKind.MODEL
    assert finding.at is not None and finding.at.b is not None
    assert finding.at.b.failures == (1, 2) and finding.at.b.fallback_from == "claude-sonnet-4-6"


# ── plain requests ───────────────────────────────────────────────────────────────────────────────────────────────


def assistants(thread: str, run: str, polls: int) -> Tape:
    tape = Tape()
    plain: dict[str, Any] = {"host": "tasks.example.com"}
    tape.add({"metadata": {}}, {"id": thread, "object": "thread"}, path="/v1/threads", **plain)
    tape.add({"task": "sum up"}, {"id": run, "thread_id": thread}, path=f"/v1/threads/{thread}/runs", **plain)
    for _ in range(polls):
        tape.add({}, {"id": run, "status": "done"}, path=f"/v1/threads/{thread}/runs/{run}", **plain)
    return tape


def test_ids_that_an_answer_brought_are_one_id_in_later_paths_and_bodies() -> None:
    finding = bisect(assistants("thread_abc", "run_x", 2).run(), assistants("thread_xyz", "run_y", 2).run())
    assert [row.indexes for row in finding.comparison.rows] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert not finding.diverges


def test_an_id_that_no_later_request_names_is_what_the_answer_says() -> None:
    good, bad = Tape(), Tape()
    for tape, owner in ((good, "team-7"), (bad, "team-9")):
        tape.add({}, {"owner_id": owner}, path="/v1/owner", host="tasks.example.com")
    assert bisect(good.run(), bad.run()).step == (1, 1)


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/v1/embeddings", "api.openai.com"),
        ("/v1beta/models/{model}:embedContent", "generativelanguage.googleapis.com"),
    ],
)
def test_another_embedding_model_is_a_changed_model(path: str, host: str) -> None:
    tapes = Tape(), Tape()
    for tape, model in zip(tapes, ("text-embedding-3-small", "text-embedding-3-large"), strict=True):
        answer = {"object": "list", "model": model, "data": [{"index": 0, "embedding": [0.1] * len(model)}]}
        tape.add({"model": model, "input": "Hello"}, answer, path=path.format(model=model), host=host)
    finding = bisect(tapes[0].run(), tapes[1].run())
    assert finding.step == (1, 1) and finding.causes[0].kind is CauseKind.MODEL


@pytest.mark.parametrize("fact", [False, True])
def test_another_answer_of_a_host_that_is_no_model_matters_only_by_what_a_model_makes_of_it(fact: bool) -> None:
    """Scores and hits of a vector store vary; the model's decision is what tells."""
    tapes = []
    for score, days in ((0.83, 28), (0.81, 24 if fact else 28)):
        tape = Tape()
        hits = {"hits": [{"id": "d7", "score": score}], "took": score}
        tape.add({"query": "leave"}, hits, path="/collections/handbook/query", host="vectors.example")
        tapes.append(played((f"You have {days} days.", []), tape=tape))
    finding = bisect(tapes[0].run(), tapes[1].run())
    assert weights(finding)[0] == ((1, 1), PartingWeight.ANSWERED)
    assert finding.step == ((2, 2) if fact else (None, None))
    assert "1 other host answered otherwise" in folded_text(finding)


@pytest.mark.parametrize(
    ("query", "vector", "limit", "same"),
    [
        ("return window for laptops", 0.2, 5, True),
        ("laptop return policy", 0.3, 5, True),
        ("laptop return policy", 0.1, 50, False),
    ],
)
def test_a_plain_request_in_other_words_is_no_divergence(query: str, vector: float, limit: int, same: bool) -> None:
    tapes = []
    for words, first, most in (("laptop return policy", 0.1, 5), (query, vector, limit)):
        tape = played(("I search.", [("search", {"q": "laptops"})]))
        body = {"query": words, "vector": [first, *range(20)], "limit": most}
        tape.add(body, {"hits": []}, path="/search", host="vectors.example")
        tapes.append(played(("You have 28 days.", []), tape=tape, system="Another."))
    assert bisect(tapes[0].run(), tapes[1].run()).diverges is not same


def test_with_exact_words_the_answer_of_a_host_is_a_divergence() -> None:
    tapes = []
    for score in (0.83, 0.81):
        tape = Tape()
        tape.add({"query": "leave"}, {"score": score}, path="/query", host="vectors.example")
        tapes.append(played(("You have 28 days.", []), tape=tape))
    finding = bisect(tapes[0].run(), tapes[1].run(), exact_words=True)
    assert finding.step == (1, 1) and finding.answers_part


def test_the_answer_of_a_host_counts_where_no_model_is_asked_after_it() -> None:
    tapes = []
    for state in ("sent", "refused"):
        tape = played(("I send it.", [("send", {"to": "Ada"})]))
        tape.add({"to": "Ada"}, {"state": state}, path="/send", host="mail.example")
        tapes.append(tape)
    assert bisect(tapes[0].run(), tapes[1].run()).step == (2, 2)


# ── what tools do ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "arguments", "reads"),
    [
        ("get_order", {}, True),
        ("listFiles", {}, True),
        ("search-web", {}, True),
        ("send_email", {}, False),
        ("open_case", {"severity": "low"}, False),
        ("get_and_delete", {}, False),
        ("frobnicate", {}, False),
        ("bash", {"command": "cd src && grep -n x *.py | head -3"}, True),
        ("bash", {"command": "ls; rm -r build"}, False),
        ("bash", {"command": "cat a > b"}, False),
        ("shell", {"command": ["git", "status"]}, True),
        ("shell", {"command": ["git", "push"]}, False),
    ],
)
def test_whether_a_tool_only_reads_is_told_by_its_verbs_or_by_its_command(
    name: str, arguments: dict[str, Any], reads: bool
) -> None:
    assert only_reads(ToolUse("1", name, arguments)) is reads
