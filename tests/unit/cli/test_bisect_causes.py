"""``rewind bisect`` names every kind of cause in its own words, with the evidence that speaks for it."""

from collections.abc import Callable

import pytest

from rewind.edit.edits import parse_edit
from rewind.errors import ExitCode
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import ACTIVE, STRICT, SYSTEM, TOOLS, Talk, begin, refund, use

GOOD, BAD = "7f3a2b9c", "9b2c0d1e"
LONG = "The customer wrote: " + "it broke after two days, and nobody answers the phone. " * 12


@pytest.fixture(autouse=True)
def eighty_columns(rewind: Rewind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


Variant = Callable[[Talk], None]


def told(rewind: Rewind, shelf: Shelf, good: Variant, bad: Variant) -> str:
    """The screen from the cause on."""
    good(begin(shelf, GOOD, name="good"))
    bad(begin(shelf, BAD, name="bad", minutes=12))
    ran = rewind("bisect", "good", "bad")
    assert ran.code == ExitCode.DIFFERENT, ran.talk
    return "Cause" + ran.text.partition("\nCause")[2]


def cause(shown: str) -> str:
    """What stands between the label of the cause and the next one."""
    lines = shown.splitlines()
    end = next(at for at, line in enumerate(lines) if at and not line.startswith("   "))
    return "".join(f"{line}\n" for line in lines[:end])


def usual(talk: Talk) -> None:
    refund(talk).end()


def asks_back(talk: Talk) -> None:
    refund(talk, agrees=False).end(exit_code=1)


def test_a_system_prompt_is_shown_word_by_word(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.system = STRICT
        asks_back(talk)

    expected = """\
Cause      system prompt changed, from step 1 on (the answer to step 1 was still
           the same)
             … up, check the order, then refund [-what is due-]{+only after
             explicit confirmation+}.
"""
    assert cause(told(rewind, shelf, usual, bad)) == expected


def test_another_model_is_named_with_both_names(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.model, talk.snapshot = "claude-haiku-4-5", "claude-haiku-4-5-20251001"
        asks_back(talk)

    expected = """\
Cause      model changed: claude-sonnet-4-6 → claude-haiku-4-5, from step 1 on
           (the answer to step 1 was still the same)
"""
    assert cause(told(rewind, shelf, usual, bad)) == expected


def test_another_snapshot_behind_the_same_name_is_told_as_that(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.snapshot = "claude-sonnet-4-6-20251101"
        asks_back(talk)

    shown = told(rewind, shelf, usual, bad)
    expected = """\
Cause      model snapshot changed behind claude-sonnet-4-6:
           claude-sonnet-4-6-20251001 → claude-sonnet-4-6-20251101, from step 1
           on (the answer to step 1 was still the same)
"""
    assert cause(shown) == expected
    assert "model claude-sonnet-4-6 ·" in shown


def test_tools_are_told_by_name_and_by_what_of_them_changed(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        changed = TOOLS[1] | {
            "description": "Pay money back, once a person has agreed",
            "input_schema": {"type": "object", "properties": {"amount": {"type": "string"}}},
        }
        talk.tools = [changed, {"name": "ask", "description": "Ask a person", "input_schema": {}}]
        asks_back(talk)

    expected = """\
Cause      tool definitions changed: lookup removed, refund changed, ask added,
           from step 1 on (the answer to step 1 was still the same)
             − lookup: Find the customer of an order {"type":"object"}
             refund description: Pay money back{+, once a person has agreed+}
             refund schema.properties.amount.type number → string
             + ask: Ask a person {}
"""
    assert cause(told(rewind, shelf, usual, bad)) == expected


def test_parameters_are_told_with_both_values(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.parameters = {"max_tokens": 1024, "temperature": 1, "top_p": 0.9}
        asks_back(talk)

    expected = """\
Cause      parameters changed: temperature, top_p, from step 1 on (the answer to
           step 1 was still the same)
             temperature 0 → 1
             + top_p 0.9
"""
    assert cause(told(rewind, shelf, usual, bad)) == expected


def test_what_a_user_said_otherwise_is_shown_word_by_word(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.says("I want my money back for order 8821, but not today.")
        talk.hears("I cannot do that.").end()

    expected = """\
Cause      user input changed
             I want my money back for order 8821{+, but not today+}.
"""
    assert cause(told(rewind, shelf, usual, bad)) == expected


def test_the_result_of_a_tool_is_told_field_by_field_with_the_call_it_answers(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.says("I want my money back for order 8821.")
        talk.hears("Understood, I'll look into the account.", use("lookup", order="8821"))
        talk.brings(ACTIVE.replace("active", "locked").replace("1240.0", "0"))
        talk.hears("The account is locked.").end()

    expected = """\
Cause      tool output changed: lookup({"order":"8821"})
             status active → locked
             balance 1240.0 → 0
"""
    assert cause(told(rewind, shelf, usual, bad)) == expected


def test_a_history_says_which_message_was_cut_and_by_how_much(rewind: Rewind, shelf: Shelf) -> None:
    def talk_with(talk: Talk, *, cut: bool) -> None:
        talk.says("What did they write?").hears("Let me see.", use("lookup", order="8821")).brings(LONG)
        talk.hears("It broke.").says("And after how many days?")
        if cut:
            (result,) = talk.messages[2]["content"]
            talk.messages[2] = {"role": "user", "content": [result | {"content": LONG[:200]}]}
        talk.hears("They do not say." if cut else "After two days.").end()

    shown = told(rewind, shelf, lambda talk: talk_with(talk, cut=False), lambda talk: talk_with(talk, cut=True))
    expected = """\
Cause      history changed: 1 truncated
             ✂ truncated  tool  messages[2]  680 → 200 characters
"""
    assert cause(shown) == expected


def test_messages_that_were_dropped_and_slipped_in_are_told(rewind: Rewind, shelf: Shelf) -> None:
    def talk_with(talk: Talk, *, changed: bool) -> None:
        talk.says("Hello.").hears("How can I help?").says("My order is 8821.").hears("Noted.").says("Pay.")
        if changed:
            talk.messages[0:2] = []
            talk.messages.insert(1, {"role": "user", "content": "Reminder: never pay."})
        talk.hears("No." if changed else "Yes.").end()

    shown = told(rewind, shelf, lambda talk: talk_with(talk, changed=False), lambda talk: talk_with(talk, changed=True))
    expected = """\
Cause      history changed: 2 dropped, 1 injected
             − dropped  user  messages[0]  "Hello."
             − dropped  assistant  messages[1]  "How can I help?"
             ! injected  user  messages[1]  "Reminder: never pay."
"""
    assert cause(shown) == expected


def test_an_error_of_the_provider_is_told_with_the_tries(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.says("I want my money back for order 8821.")
        for _ in range(3):
            talk.fails(529, "Overloaded")
        talk.end(exit_code=1)

    shown = told(rewind, shelf, usual, bad)
    expected = """\
Cause      provider error: 529, where the good run got an answer
             tries: 1 in the good run, 3 in the bad one
"""
    assert cause(shown) == expected


def test_a_step_that_only_one_run_made_is_the_path(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        refund(talk).says("Are you sure?").hears("On second thought, no.").end()

    shown = told(rewind, shelf, usual, bad)
    expected = """\
Cause      path changed: step 4 of the bad run, which the good run did not make
"""
    assert cause(shown) == expected


def test_the_model_itself_is_the_cause_where_nothing_else_differs(rewind: Rewind, shelf: Shelf) -> None:
    shown = told(rewind, shelf, usual, asks_back)
    expected = """\
Cause      same request, different answer
             temperature 0
"""
    assert cause(shown) == expected
    assert "system prompt (87 characters)" in shown


def test_a_day_that_differs_is_shown_where_it_may_be_why(rewind: Rewind, shelf: Shelf) -> None:
    def dated(talk: Talk, day: str, *, agrees: bool) -> None:
        talk.system = f"{SYSTEM} Today is {day}."
        refund(talk, agrees=agrees).end()

    shown = told(
        rewind,
        shelf,
        lambda talk: dated(talk, "2025-11-15", agrees=True),
        lambda talk: dated(talk, "2025-11-16", agrees=False),
    )
    expected = """\
Causes     1  system prompt changed, from step 1 on (the answer to step 1 was
              still the same)
                … refund what is due. Today is 2025-11-[-15-]{+16+}.
                nothing but a date differs
           2  same request, different answer
                temperature 0
"""
    assert cause(shown) == expected


def test_several_causes_are_ranked_and_the_first_is_shown_in_full(rewind: Rewind, shelf: Shelf) -> None:
    def bad(talk: Talk) -> None:
        talk.system = STRICT
        talk.parameters = {"max_tokens": 1024, "temperature": 1}
        talk.says("I want my money back for order 8821.")
        talk.hears("Understood, I'll look into the account.", use("lookup", order="8821"))
        talk.brings(ACTIVE.replace("active", "locked"))
        talk.hears("I cannot.").end()

    usual(begin(shelf, GOOD, name="good"))
    bad(begin(shelf, BAD, name="bad", minutes=12))
    shown = rewind("bisect", "good", "bad").text
    expected = """\
Causes     1  system prompt changed, from step 1 on (the answer to step 1 was
              still the same)
                … up, check the order, then refund [-what is due-]{+only after
                explicit confirmation+}.
           2  parameters changed: temperature 0 → 1, from step 1 on
           3  tool output changed: lookup({"order":"8821"})
                status active → locked
Since      first seen 2025-11-15 09:14 UTC in 9b2c0d1e (the bad run); last with
           the old one: 7f3a2b9c (the good run), 09:02 UTC
Ruled out  model claude-sonnet-4-6 · snapshot claude-sonnet-4-6-20251001 · 2
           tools · user input · history
Matched    1 of 3 steps · re-sync: none
"""
    assert shown[shown.index("Causes") :] == expected


def test_every_suggested_edit_is_one_that_fork_understands(rewind: Rewind, shelf: Shelf) -> None:
    def changed(talk: Talk, what: str) -> None:
        if what == "system":
            talk.system = STRICT
        if what == "model":
            talk.model = "claude-haiku-4-5"
        if what == "parameters":
            talk.parameters = {"max_tokens": 1024, "top_p": 0.5}
        asks_back(talk)

    usual(begin(shelf, GOOD))
    for number, what in enumerate(("system", "model", "parameters")):
        changed(begin(shelf, f"9b2c0d1{number}", minutes=12 + number), what)
        line = rewind("bisect", GOOD, f"9b2c0d1{number}").talk.splitlines()[1]
        assert line.startswith(f"→ try it:    rewind fork 9b2c0d1{number}:2 --set "), what
        for edit in line.split("--set ")[1:]:
            parse_edit(edit.strip().strip("'"))


def test_of_a_cause_in_the_second_place_both_halves_are_shown(rewind: Rewind, shelf: Shelf) -> None:
    long = " ".join(f"word{number}" for number in range(60))

    def run(talk: Talk, status: str, *, harsh: bool, agrees: bool) -> None:
        talk.system = STRICT if harsh else SYSTEM
        talk.says("I want my money back for order 8821.")
        talk.hears("Understood, I'll look into the account.", use("lookup", order="8821"))
        talk.brings(f"The account is {status} today.")
        talk.hears("It is done." if agrees else "I cannot do it.").end()

    shown = told(
        rewind,
        shelf,
        lambda talk: run(talk, f"fine, says the clerk: {long}", harsh=False, agrees=True),
        lambda talk: run(talk, "locked", harsh=True, agrees=False),
    )
    second = cause(shown).partition("2  tool output changed")[2]
    assert "fine, says the clerk" in second and "locked" in second


def test_results_that_always_differ_are_one_line(rewind: Rewind, shelf: Shelf) -> None:
    def run(talk: Talk, took: float, *, agrees: bool) -> None:
        talk.says("Mend it.")
        for number in range(4):
            talk.hears("Again.", use("lookup", order="8821"))
            talk.brings(f"41 passed in {took + number}s")
        talk.hears("It is done." if agrees else "I cannot do it.").end()

    shown = told(rewind, shelf, lambda talk: run(talk, 0.31, agrees=True), lambda talk: run(talk, 0.52, agrees=False))
    assert "2  tool output changed: lookup ×4, at step 2\n                nothing but a duration differs\n" in shown
