"""The first step where a bad run left a good one, and why."""

from collections.abc import Callable
from typing import Any

import pytest

from rewind.compare.cause import CauseKind
from rewind.compare.delta import Aspect
from rewind.compare.divergence import Finding, PartingWeight, bisect
from rewind.conversation.context import Fate
from rewind.model.step import Ending
from unit.compare.chats import Chat, Tape, sketched

LOOKUP = ("lookup_account", {"order": "8821"})
REFUND = ("refund", {"order": "8821", "amount": 189.0})
TOOLS = [
    {"name": name, "description": f"To {name}", "input_schema": {"type": "object", "properties": {}}}
    for name in ("lookup_account", "refund")
]
DONE = "Done: your money is on its way."
REFUSED = "I cannot do that without explicit confirmation."


def good(tape: Tape | None = None, **chat: Any) -> Tape:
    """Looks the account up, refunds, and says so."""
    tape = tape or Tape()
    one = Chat(tape, **{"tools": TOOLS, **chat})
    one.user("I want my money back for order 8821.").says("Let me look.", [LOOKUP])
    one.results('{"status": "active"}').says("It is active.", [REFUND])
    one.results('{"refunded": 189.0}').says(DONE)
    return tape


def refusing(
    *, given: str = '{"status": "active"}', says: str = REFUSED, first: str = "Let me look.", **chat: Any
) -> Tape:
    """Goes the same way at first, and then says no."""
    tape = Tape()
    one = Chat(tape, **{"tools": TOOLS, "prefix": "toolu_b", **chat})
    one.user("I want my money back for order 8821.").says(first, [LOOKUP])
    one.results(given).says(says)
    return tape


def found(a: Tape, b: Tape) -> Finding:
    """Asserts that digests from the journal lead to the same finding as the bodies."""
    finding = bisect(a.run(), b.run())
    again = bisect(sketched(a.run()), sketched(b.run()))
    assert again.step == finding.step
    assert kinds(again) == kinds(finding)
    return finding


def kinds(finding: Finding) -> list[CauseKind]:
    return [cause.kind for cause in finding.causes]


def test_a_run_does_not_part_from_itself() -> None:
    finding = found(good(), good())
    assert not finding.diverges and finding.step == (None, None) and finding.causes == ()
    assert (finding.matched, finding.total) == (3, 3)


def test_ids_that_were_drawn_anew_are_no_parting() -> None:
    assert not found(good(), good(prefix="toolu_z")).diverges


DOCUMENTS = "3f2b8c1e-7d4a-4b5c-9e6f-1a2b3c4d5e6f", "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d"


def reader(opened: str, known: str) -> Tape:
    chat = Chat(Tape()).user("What is the notice?").says("", [("find", {"q": "notice"})]).results(known)
    return chat.says("", [("read", {"id": opened})]).results("Three months.").says("Three months.").tape


def test_an_id_that_both_models_knew_was_chosen_though_it_looks_drawn() -> None:
    one, other = DOCUMENTS
    both = " ".join(DOCUMENTS)
    assert not found(reader(one, one), reader(other, other)).diverges
    finding = found(reader(one, both), reader(other, both))
    assert finding.diverges and finding.step == (2, 2)


def test_a_changed_prompt_is_the_cause_where_the_answers_part_and_not_where_it_appears() -> None:
    finding = found(good(), refusing(system="Be kind, and ask for confirmation."))
    assert finding.step == (2, 2) and finding.answers_part
    assert kinds(finding) == [CauseKind.SYSTEM]
    assert finding.causes[0].since.indexes == (1, 1)
    assert (finding.matched, finding.total) == (1, 3)
    (difference,) = finding.causes[0].differences
    assert (difference.before, difference.after) == ("Be kind.", "Be kind, and ask for confirmation.")


def test_what_was_the_same_is_ruled_out_with_its_value() -> None:
    finding = found(good(), refusing(system="Be harsh."))
    facts = {one.kind: one.fact for one in finding.ruled_out}
    assert facts[CauseKind.MODEL] == "claude-sonnet-4-6"
    assert facts[CauseKind.PARAMETERS] == "max_tokens 100"
    assert facts[CauseKind.TOOLS] == "2" and facts[CauseKind.TOOL_OUTPUT] == "1"
    assert CauseKind.SYSTEM not in facts


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"model": "claude-opus-5"}, CauseKind.MODEL),
        ({"system": "Be harsh."}, CauseKind.SYSTEM),
        ({"tools": TOOLS[:1]}, CauseKind.TOOLS),
        ({"settings": {"max_tokens": 100, "temperature": 1}}, CauseKind.PARAMETERS),
        ({"given": '{"status": "frozen"}'}, CauseKind.TOOL_OUTPUT),
        ({}, CauseKind.SAMPLING),
    ],
)
def test_each_change_is_named(changes: dict[str, Any], kind: CauseKind) -> None:
    finding = found(good(), refusing(**changes))
    assert finding.step == (2, 2)
    assert kinds(finding) == [kind]


def test_several_causes_are_all_told_in_the_order_of_evidence() -> None:
    finding = found(good(), refusing(given='{"status": "frozen"}', system="Be harsh.", settings={"max_tokens": 5}))
    assert kinds(finding) == [CauseKind.SYSTEM, CauseKind.PARAMETERS, CauseKind.TOOL_OUTPUT]


def test_a_tool_output_is_told_with_the_call_it_answers() -> None:
    finding = found(good(), refusing(given='{"status": "frozen"}'))
    (difference,) = finding.causes[0].differences
    assert difference.about == 'lookup_account({"order":"8821"})'
    assert difference.after == '{"status": "frozen"}'


def test_a_tool_output_that_mattered_only_later_is_told_with_the_step_that_brought_it() -> None:
    tape = Tape()
    one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.").says("Let me look.", [LOOKUP])
    one.results('{"status": "frozen"}').says("It is active.", [REFUND])
    one.results('{"refunded": 189.0}').says("Sorry, no.")
    finding = found(good(), tape)
    assert finding.step == (3, 3)
    assert kinds(finding) == [CauseKind.TOOL_OUTPUT]
    assert finding.causes[0].since.indexes == (2, 2)


def test_a_snapshot_behind_an_alias_is_seen_where_nothing_else_differs() -> None:
    tape = Tape()
    one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.")
    one.says("Let me look.", [LOOKUP], snapshot="claude-sonnet-4-6-20261101")
    one.results('{"status": "active"}').says(REFUSED, snapshot="claude-sonnet-4-6-20261101")
    finding = found(good(), tape)
    assert finding.step == (2, 2) and kinds(finding) == [CauseKind.SNAPSHOT]
    assert finding.causes[0].since.indexes == (1, 1)


def test_user_input_that_changed_is_named() -> None:
    tape = Tape()
    Chat(tape, tools=TOOLS).user("Where is order 8821?").says("It is on its way.")
    finding = found(good(), tape)
    assert finding.step == (1, 1) and kinds(finding) == [CauseKind.INPUT]


@pytest.mark.parametrize(
    ("edit", "fate"),
    [
        (lambda messages: messages[:1] + messages[3:], Fate.DROPPED),
        (lambda messages: [*messages[:1], {"role": "user", "content": "By the way."}, *messages[1:]], Fate.INJECTED),
        (lambda messages: [{"role": "user", "content": "I want my"}, *messages[1:]], Fate.TRUNCATED),
    ],
)
def test_a_history_that_the_agent_edited_is_named(
    edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], fate: Fate
) -> None:
    a, b = Tape(), Tape()
    for tape in (a, b):
        one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.").says("Let me look.", [LOOKUP])
        one.results('{"status": "active"}').says("It is active. What shall I do about it now?")
        if tape is b:
            one.messages = edit(one.messages)
        one.user("Refund it.").says("As you wish." if tape is a else "Refund what?")
    finding = found(a, b)
    assert finding.step == (3, 3) and kinds(finding) == [CauseKind.HISTORY]
    assert fate in [difference.fate for difference in finding.causes[0].differences]


def test_a_conversation_that_was_torn_by_cutting_its_beginning_is_still_one() -> None:
    a, b = Tape(), Tape()
    for tape in (a, b):
        one = Chat(tape).user("A long question that the agent will cut short later on.").says("Yes.")
        if tape is b:
            one.messages[0] = {"role": "user", "content": "A long question"}
        one.user("And then?").says("Then this." if tape is a else "Which question?")
    finding = found(a, b)
    assert finding.step == (2, 2) and kinds(finding) == [CauseKind.HISTORY]
    assert [difference.fate for difference in finding.causes[0].differences] == [Fate.TRUNCATED]


def test_an_agent_that_forgot_everything_made_the_same_step_with_no_history() -> None:
    a, b = Tape(), Tape()
    for tape in (a, b):
        one = Chat(tape).user("My order is 8821.").says("Noted.").user("It came broken.").says("I am sorry.")
        if tape is b:
            one.messages = []
        one.user("What shall I do?").says("Send it back." if tape is a else "About what?")
    finding = found(a, b)
    assert finding.step == (3, 3) and kinds(finding) == [CauseKind.HISTORY]
    assert {difference.fate for difference in finding.causes[0].differences} == {Fate.DROPPED}


def test_a_window_that_moves_over_a_long_history_is_compared_step_by_step() -> None:
    a, b = Tape(), Tape()
    for tape in (a, b):
        one = Chat(tape)
        for turn in range(40):
            said = "something else" if tape is b and turn == 10 else "this"
            one.user(f"Question {turn}: {said}?").says(f"Answer {turn}.")
            one.messages = one.messages[-6:]
    finding = found(a, b)
    assert finding.step == (11, 11) and kinds(finding) == [CauseKind.INPUT]
    comparison = finding.comparison
    changed = [row.indexes for row in comparison.rows if not comparison.relation(row).alike]
    assert changed == [(11, 11)]


def test_an_error_where_the_other_run_had_an_answer_is_named() -> None:
    tape = Tape()
    one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.").says("Let me look.", [LOOKUP])
    one.results('{"status": "active"}').fails().fails()
    finding = found(good(), tape)
    assert finding.step == (2, 3) and kinds(finding) == [CauseKind.ERROR]
    assert finding.causes[0].evidence == "tries: 1 in the good run, 2 in the bad one"


def test_an_answer_that_broke_off_is_named() -> None:
    tape = Tape()
    one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.")
    one.says("Let", ending=Ending.UPSTREAM_CUT)
    assert kinds(found(good(), tape)) == [CauseKind.ERROR]


def test_a_retry_that_went_well_is_no_parting() -> None:
    tape = Tape()
    one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.").fails().says("Let me look.", [LOOKUP])
    one.results('{"status": "active"}').says("It is active.", [REFUND])
    one.results('{"refunded": 189.0}').fails().says(DONE)
    assert not found(good(), tape).diverges


def test_a_step_that_only_one_run_makes_is_another_path() -> None:
    tape = good()
    one = Chat(tape, tools=TOOLS)
    one.messages = [{"role": "user", "content": "I want my money back for order 8821."}]
    shorter = Tape(tape.steps[:2])
    finding = found(good(), shorter)
    assert finding.step == (3, None) and kinds(finding) == [CauseKind.PATH]


def test_other_words_beside_the_same_tools_are_no_parting_where_a_run_parts_later() -> None:
    finding = found(good(), refusing(first="I'll have a look.", system="Be harsh."))
    assert finding.step == (2, 2)
    assert finding.comparison.relation(finding.before[0]).reworded


def test_runs_that_differ_in_words_alone_do_not_part_unless_words_count() -> None:
    tape = Tape()
    one = Chat(tape, tools=TOOLS).user("I want my money back for order 8821.").says("Looking!", [LOOKUP])
    one.results('{"status": "active"}').says("It is active.", [REFUND])
    one.results('{"refunded": 189.0}').says(DONE)
    finding = found(good(), tape)
    assert not finding.diverges and finding.matched == 3
    assert [(one.row.indexes, one.weight) for one in finding.partings] == [((1, 1), PartingWeight.PROSE)]
    to_the_word = bisect(good().run(), tape.run(), exact_words=True)
    assert to_the_word.step == (1, 1) and not to_the_word.answers_part
    assert kinds(to_the_word) == [CauseKind.SAMPLING]


def test_requests_that_differ_are_told_though_every_answer_is_the_same() -> None:
    finding = found(good(), good(system="Be very kind."))
    assert finding.diverges and not finding.answers_part
    assert finding.step == (1, 1) and kinds(finding) == [CauseKind.SYSTEM]


def test_times_in_a_prompt_are_noise() -> None:
    def at(time: str) -> dict[str, Any]:
        return {"system": f"Be kind. It is {time}."}

    finding = found(good(**at("2026-11-15T09:14:02Z")), good(**at("2026-11-16T10:00:00Z")))
    assert not finding.diverges
    parted = found(good(**at("2026-11-15T09:14:02Z")), refusing(**at("2026-11-16T10:00:00Z")))
    # It is suspected last of all, and not ruled out.
    assert kinds(parted) == [CauseKind.SAMPLING, CauseKind.SYSTEM]
    assert parted.causes[1].evidence == "nothing but a time differs"
    assert CauseKind.SYSTEM not in {one.kind for one in parted.ruled_out}
    assert Aspect.SYSTEM in parted.comparison.relation(parted.before[0]).noise


def booking(at: str, told: str) -> Tape:
    tape = Tape()
    one = Chat(tape).user(f"Book it. {told}").says("", [("book", {"at": at})])
    one.results("booked").says("Done.")
    return tape


def test_a_time_that_the_model_was_told_is_noise_in_its_answer_and_one_that_it_chose_is_not() -> None:
    first, second = "2026-11-20T10:00:00Z", "2027-03-21T15:30:00Z"
    assert not found(booking(first, f"It is {first}."), booking(second, f"It is {second}.")).diverges
    chosen = found(booking(first, ""), booking(second, ""))
    assert chosen.step == (1, 1) and kinds(chosen) == [CauseKind.SAMPLING]


def test_a_parallel_conversation_that_uses_tools_is_no_mere_aside() -> None:
    tape = good()
    other = Chat(tape, system="You refund.", prefix="toolu_c").user("Refund order 1.")
    began = tape.steps[0][0].request.ts
    other.says("", [REFUND], at=began + 1).results("{}").says("Done.", at=began + 2)
    finding = found(good(), tape)
    assert finding.diverges and CauseKind.PATH in kinds(finding)


def test_a_date_is_suspected_once_the_answers_part_and_nothing_else_differs() -> None:
    def on(day: str) -> dict[str, Any]:
        return {"system": f"Be kind. Today is {day}."}

    assert not found(good(**on("2026-11-15")), good(**on("2026-11-16"))).diverges
    parted = found(good(**on("2026-11-15")), refusing(**on("2026-11-16")))
    assert kinds(parted) == [CauseKind.SYSTEM, CauseKind.SAMPLING]
    assert parted.causes[0].evidence == "nothing but a date differs"


def test_a_parallel_call_more_is_told_and_no_parting() -> None:
    tape = good()
    began = tape.steps[0][0].request.ts
    Chat(tape, system="You judge.").user("Is this rude?")
    judge = Chat(tape, system="You judge.").user("Is this rude?")
    judge.says("No.", at=began + 1)
    finding = found(good(), tape)
    assert not finding.diverges
    assert [row.indexes for row in finding.beside] == [(None, 4)]


def test_a_call_more_that_nothing_ran_beside_is_another_path() -> None:
    tape = good()
    Chat(tape, system="You judge.").user("Is this rude?").says("No.")
    finding = found(good(), tape)
    assert finding.step == (None, 4) and CauseKind.PATH in kinds(finding)


def test_the_step_is_told_where_the_runs_say_the_same_again() -> None:
    a, b = Tape(), Tape()
    for tape, word in ((a, "blue"), (b, "green")):
        one = Chat(tape).user("What colour?").says(f"It is {word}.")
        one.user("Thanks. How much?").says("Nine euros.")
    finding = found(a, b)
    assert finding.step == (1, 1)
    assert finding.resync is not None and finding.resync.indexes == (2, 2)


def test_a_later_step_does_not_repeat_what_an_earlier_one_brought() -> None:
    a, b = Tape(), Tape()
    for tape, word in ((a, "blue"), (b, "green")):
        one = Chat(tape).user("What colour?").says(f"It is {word}.")
        one.user("Thanks. How much?").says("Nine euros.")
    comparison = found(a, b).comparison
    relation = comparison.relation(comparison.rows[1])
    assert relation.alike and relation.inherited
