"""``rewind diff``: what two sessions come to, what differs row by row, and only what was asked for."""

from typing import Any

import pytest

from rewind.errors import ExitCode
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import ACTIVE, STRICT, SYSTEM, TOOLS, Talk, begin, refund, use

A, B = "7f3a2b9c", "9b2c0d1e"
LONG = "The customer wrote: " + "it broke after two days, and nobody answers the phone. " * 12


@pytest.fixture(autouse=True)
def eighty_columns(rewind: Rewind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def refunds(shelf: Shelf) -> None:
    """The same run with another prompt, which ends sooner."""
    refund(begin(shelf, A, name="refund-good")).end()
    talk = begin(shelf, B, name="refund-bad", minutes=12, system=STRICT)
    refund(talk, agrees=False).end(exit_code=1, seconds=5.1)


def rows_of(text: str) -> str:
    """What stands below the summary."""
    return text.partition("\n\n")[2].partition("\n\n")[2]


def test_the_whole_screen(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", "refund-good", "refund-bad")
    expected = """\
  a  7f3a2b9c  refund-good  ✓ ok      2025-11-15 09:02 UTC
  b  9b2c0d1e  refund-bad   ✗ exit 1  2025-11-15 09:14 UTC

steps   0 equal · 2 changed · 1 only in a · 0 only in b
tokens  3,300 → 2,200 (−1,100)
cost    $0.013 → $0.009 (−$0.0045)
time    8.4 s → 5.1 s (−3.3 s)

≠ Step 1
  system prompt  … up, check the order, then refund [-what is due-]{+only after
                 explicit confirmation+}.

≠ Step 2
  system prompt  as at step 1
  answer         − It is active, so I'll proceed.
                 + I cannot complete this action without explicit confirmation.
  tool calls     − refund({"amount":189.0,"order":"8821"})

− Step 3  only in a  "Done: $189.00 is on its way back to you."
"""
    assert ran.text == expected
    assert ran.code == ExitCode.DIFFERENT
    assert ran.talk == f"→ where they part, and why: rewind bisect {A} {B}\n"


def test_a_session_is_the_same_as_itself(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", A, A)
    expected = """\
  a  7f3a2b9c  refund-good  ✓ ok  2025-11-15 09:02 UTC
  b  7f3a2b9c  refund-good  ✓ ok  2025-11-15 09:02 UTC

steps   3 equal · 0 changed · 0 only in a · 0 only in b
tokens  3,300 → 3,300 (no change)
cost    $0.013 → $0.013 (no change)
time    8.4 s → 8.4 s (no change)

✓ the same: 3 steps
"""
    assert ran.text == expected
    assert (ran.code, ran.talk) == (ExitCode.OK, "")


def test_ids_and_times_count_as_the_same(rewind: Rewind, shelf: Shelf) -> None:
    for session, number in ((A, 1), (B, 2)):
        refund(begin(shelf, session, system=f"{SYSTEM} It is 2025-11-15T09:0{number}:00Z.")).end()
    ran = rewind("diff", A, B)
    assert ran.code == ExitCode.OK
    assert "        3 steps only in ids and times\n" in ran.text
    assert ran.text.endswith("✓ the same, except for ids and times: 3 steps\n")


def test_every_aspect_has_its_place_and_its_form(rewind: Rewind, shelf: Shelf) -> None:
    for session, other in ((A, False), (B, True)):
        talk = begin(shelf, session)
        talk.says("What did they write?").hears("Let me see.", use("lookup", order="8821")).brings(LONG)
        talk.hears("It broke.", use("lookup", order="8821")).brings(
            ACTIVE.replace("active", "locked") if other else ACTIVE
        )
        if other:
            (result,) = talk.messages[2]["content"]
            talk.messages[2] = {"role": "user", "content": [result | {"content": LONG[:200]}]}
            talk.system, talk.model = STRICT, "claude-haiku-4-5"
            talk.parameters = {"max_tokens": 2048, "top_k": 5}
            talk.tools = [TOOLS[0] | {"description": "Find the customer of an order by its number"}]
        amount = 10.0 if other else 189.0
        words = "I pay a part of it now." if other else "I pay all of it now."
        talk.hears(words, use("refund", order="8821", amount=amount)).end()
    shown = rewind("diff", A, B).text
    expected = """\
≠ Step 3
  system prompt  … up, check the order, then refund [-what is due-]{+only after
                 explicit confirmation+}.
  messages       3 same, 1 changed, 1 truncated
  tool output    lookup({"order":"8821"})
                 status active → locked
  history        ✂ truncated  tool  messages[2]  680 → 200 characters
  tools          lookup description: Find the customer of an order {+by its
                 number+}
                 − refund: Pay money back
                 {"properties":{"amount":{"type":"number"}},"type":"object"}
  parameters     max_tokens 1024 → 2048
                 − temperature 0
                 + top_k 5
  model          claude-sonnet-4-6 → claude-haiku-4-5
  answer         I pay [-all-]{+a part+} of it now.
  tool calls     refund.amount 189.0 → 10.0
"""
    assert rows_of(shown) == expected


def test_what_is_changed_in_every_step_is_shown_once(rewind: Rewind, shelf: Shelf) -> None:
    for session, system in ((A, SYSTEM), (B, STRICT)):
        talk = begin(shelf, session, system=system)
        for number in range(1, 40):
            talk.says(f"Question {number}?").hears(f"Answer {number}.")
        talk.end()
    ran = rewind("diff", A, B)
    expected = """\
≠ Step 1
  system prompt  … up, check the order, then refund [-what is due-]{+only after
                 explicit confirmation+}.

≠ Steps 2–39  system prompt as at step 1
"""
    assert rows_of(ran.text) == expected


def test_an_answer_that_stays_in_the_history_is_told_once(rewind: Rewind, shelf: Shelf) -> None:
    for session, answer in ((A, "Blue."), (B, "Green.")):
        talk = begin(shelf, session).says("Which colour?").hears(answer)
        talk.says("Thank you.").hears("Gladly.").end()
    ran = rewind("diff", A, B)
    expected = """\
≠ Step 1
  answer         Blue. → Green.
"""
    assert rows_of(ran.text) == expected
    assert "steps   1 equal · 1 changed" in ran.text


def test_steps_of_one_run_only_are_told_with_what_was_said(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, A)).end()
    talk = refund(begin(shelf, B))
    for number in range(1, 11):
        talk.says(f"Question {number}?").hears(f"Answer {number}.")
    talk.end()
    expected = """\
+ Step 4  only in b  "Answer 1."
+ Step 5  only in b  "Answer 2."
+ Step 6  only in b  "Answer 3."
+ Step 7  only in b  "Answer 4."
+ Step 8  only in b  "Answer 5."
  … 4 steps
+ Step 13  only in b  "Answer 10."
"""
    assert rows_of(rewind("diff", A, B).text) == expected
    assert rewind("diff", A, B, "--full").text.count("only in b  ") == 10


def test_tries_are_told_and_are_no_difference(rewind: Rewind, shelf: Shelf) -> None:
    begin(shelf, A).says("Hello.").hears("Hi.").end()
    begin(shelf, B).says("Hello.").fails(529, "Overloaded").hears("Hi.").end()
    ran = rewind("diff", A, B)
    assert ran.code == ExitCode.OK
    assert "        1 step with more tries in one run\n" in ran.text


def test_an_error_is_told_with_its_words(rewind: Rewind, shelf: Shelf) -> None:
    begin(shelf, A).says("Hello.").hears("Hi.").end()
    begin(shelf, B).says("Hello.").fails(400, "messages: too long").end()
    expected = """\
≠ Step 1
  answer         − Hi.
  status         200 → 400
                 + messages: too long
"""
    assert rows_of(rewind("diff", A, B).text) == expected


def test_an_unknown_price_is_a_dash_and_has_no_difference(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, A)).end()
    refund(begin(shelf, B, model="nobody-knows-me", snapshot="nobody-knows-me")).end()
    shown = rewind("diff", A, B).text
    assert "\ncost    $0.013 → —\n" in shown
    view = rewind("diff", A, B, "--json").json()
    assert view["cost_usd"] == {"a": pytest.approx(0.0135), "b": None, "delta": None}


def test_a_session_without_steps_is_told_as_one(rewind: Rewind, shelf: Shelf, refunds: None) -> None:
    shelf.add("00000000")
    shelf.add("00000001")
    ran = rewind("diff", A, "00000000")
    assert ran.code == ExitCode.DIFFERENT
    assert "00000000 has no steps\n" in ran.text
    empty = rewind("diff", "00000000", "00000001")
    assert empty.code == ExitCode.OK
    assert empty.text.endswith("✓ the same: no steps\n")


# ── less of it, or more ──────────────────────────────────────────────────────────────────────────────────────


def test_stat_has_a_ribbon_and_a_line_for_each_row(rewind: Rewind, shelf: Shelf) -> None:
    for session, other in ((A, False), (B, True)):
        talk = begin(shelf, session).says("Hello.").hears("Hi.").says("Pay me back.")
        talk.hears("Let me look." if other else "I look.", use("lookup", order="8821")).brings(ACTIVE)
        talk.hears("No." if other else "Yes.")
        if not other:
            talk.says("Thanks.").hears("Bye.")
        talk.end()
    ran = rewind("diff", A, B, "--stat")
    expected = """\
= ≈ ≠ −
= same · ≈ reworded · ≠ changed · − only in a

=  1
≈  2      answer
≠  3      answer
−  4 / –  "Bye."
"""
    assert rows_of(ran.text) == expected
    assert ran.code == ExitCode.DIFFERENT


def test_a_long_ribbon_counts(rewind: Rewind, shelf: Shelf) -> None:
    for session, last in ((A, "Yes."), (B, "No.")):
        talk = begin(shelf, session)
        for number in range(1, 40):
            talk.says(f"Question {number}?").hears(f"Answer {number}.")
        talk.says("And now?").hears(last).end()
    expected = """\
=×39 ≠
= same · ≠ changed

=  1–39  39 steps
≠  40    answer
"""
    assert rows_of(rewind("diff", A, B, "--stat").text) == expected


def test_only_shows_and_judges_what_it_names(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", A, B, "--only", "system")
    expected = """\
≠ Step 1
  system prompt  … up, check the order, then refund [-what is due-]{+only after
                 explicit confirmation+}.

≠ Step 2  system prompt as at step 1
"""
    assert rows_of(ran.text) == expected
    assert ran.code == ExitCode.DIFFERENT
    same = rewind("diff", A, B, "--only", "tools", "--only", "parameters")
    assert same.code == ExitCode.OK
    assert same.text.endswith("✓ the same in tools, parameters: 3 steps\n")
    assert rewind("diff", A, B, "--only", "weather").code == ExitCode.USAGE


@pytest.mark.parametrize("arguments", [(f"{A}:2", B), (A, f"{B}:2"), (A, B, "--step", "2"), (f"{A}:2", f"{B}:2")])
def test_one_step_can_be_named_on_either_side(rewind: Rewind, refunds: None, arguments: tuple[str, ...]) -> None:
    ran = rewind("diff", *arguments)
    expected = """\
  a  7f3a2b9c  refund-good  ✓ ok      2025-11-15 09:02 UTC
  b  9b2c0d1e  refund-bad   ✗ exit 1  2025-11-15 09:14 UTC

≠ Step 2
  system prompt  … up, check the order, then refund [-what is due-]{+only after
                 explicit confirmation+}.
  answer         − It is active, so I'll proceed.
                 + I cannot complete this action without explicit confirmation.
  tool calls     − refund({"amount":189.0,"order":"8821"})
"""
    assert ran.text == expected
    assert (ran.code, ran.talk) == (ExitCode.DIFFERENT, "")
    (row,) = rewind("diff", *arguments, "--json").json()["rows"]
    assert (row["a"], row["b"]) == (2, 2)


def test_any_two_steps_can_be_compared_with_all_that_differs(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", f"{A}:1", f"{A}:2")
    expected = """\
≠ Step 1 / 2
  messages       3 added, 1 dropped
  user input     − I want my money back for order 8821.
  tool output    lookup({"order":"8821"})
                 + {"customer": "C-1041", "status": "active", "balance": 1240.0}
  history        + added  user  messages[0]  "I want my money back for order
                 8821."
                 + added  assistant  messages[1]  "Understood, I'll look into
                 the account.⏎→ lookup({"order":"8821"})"
  answer         − Understood, I'll look into the account.
                 + It is active, so I'll proceed.
  tool calls     − lookup({"order":"8821"})
                 + refund({"amount":189.0,"order":"8821"})
"""
    assert ran.text.partition("\n\n")[2] == expected
    assert ran.code == ExitCode.DIFFERENT
    assert rewind("diff", f"{A}:1", f"{A}:1").code == ExitCode.OK


def test_a_step_that_has_no_partner_is_told_as_that(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", f"{A}:3", B)
    assert ran.code == ExitCode.DIFFERENT
    assert ran.text.endswith('− Step 3  only in a  "Done: $189.00 is on its way back to you."\n')


def test_a_try_that_failed_stands_for_the_step_that_came_of_it(rewind: Rewind, shelf: Shelf) -> None:
    begin(shelf, A).says("Hello.").fails(529, "Overloaded").hears("Hi.").end()
    begin(shelf, B).says("Hello.").hears("Hi.").end()
    assert rewind("diff", f"{A}:1", B).code == ExitCode.OK


def test_steps_that_are_not_there_and_options_that_do_not_fit(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", f"{A}:9", B)
    assert (ran.code, ran.data) == (ExitCode.NOT_FOUND, b"")
    assert f"Session {A} has no step 9; it has 3, from 1 to 3." in ran.talk
    assert rewind("diff", A, B, "--step", "0").code == ExitCode.USAGE
    assert rewind("diff", f"{A}:1", B, "--step", "1").code == ExitCode.USAGE
    assert rewind("diff", A).code == ExitCode.USAGE


def test_full_shows_what_is_folded_otherwise(rewind: Rewind, shelf: Shelf) -> None:
    lines = [f"Rule {number}: be kind." for number in range(1, 31)]
    changed = [*lines[:14], "Rule 15: be strict.", *lines[15:]]
    for session, rules in ((A, lines), (B, changed)):
        begin(shelf, session, system="\n".join(rules)).says("Hello.").hears("Hi.").end()
    expected = """\
≠ Step 1
  system prompt  … 13 lines
                 Rule 14: be kind.
                 Rule 15: be [-kind-]{+strict+}.
                 Rule 16: be kind.
                 … 14 lines
"""
    assert rows_of(rewind("diff", A, B).text) == expected
    full = rewind("diff", A, B, "--full").text
    assert all(f"Rule {number}: be kind." in full for number in range(1, 31) if number != 15)
    assert "Rule 15: be [-kind-]{+strict+}." in full


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_has_the_summary_the_figures_and_every_row(rewind: Rewind, refunds: None) -> None:
    ran = rewind("diff", A, B, "--json")
    assert (ran.code, ran.talk) == (ExitCode.DIFFERENT, "")
    view: dict[str, Any] = ran.json()
    assert view["schema"] == "rewind/diff@1"
    assert (view["a"]["id"], view["b"]["id"], view["same"]) == (A, B, False)
    assert view["summary"] == {
        "equal": 0,
        "changed": 2,
        "only_in_a": 1,
        "only_in_b": 0,
        "volatile": 0,
        "reworded": 0,
        "reordered": 0,
        "retried": 0,
    }
    assert view["tokens"] == {"a": 3300, "b": 2200, "delta": -1100}
    assert view["seconds"]["delta"] == pytest.approx(-3.3)
    first, second, third = view["rows"]
    assert (first["likeness"], first["changed"]) == ("changed", ["system"])
    (difference,) = first["differences"]
    assert (difference["before"], difference["after"]) == (SYSTEM, STRICT)
    assert second["changed"] == ["system", "calls", "answer"]
    assert second["repeated"] == [{"aspect": "system", "as_at": {"a": 1, "b": 1}}]
    assert [one["aspect"] for one in second["differences"]] == ["calls", "answer"]
    assert (third["a"], third["b"], third["likeness"]) == (3, None, "only_in_a")
    assert third["tries"] == {"a": 1, "b": None}


def test_json_of_nothing_to_tell(rewind: Rewind, shelf: Shelf) -> None:
    shelf.add("00000000")
    view = rewind("diff", "00000000", "00000000", "--json").json()
    assert (view["same"], view["rows"]) == (True, [])
    assert view["tokens"] == {"a": None, "b": None, "delta": None}


def test_every_line_fits_the_screen(rewind: Rewind, refunds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("60", "80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        for more in ((), ("--stat",), ("--full",)):
            shown = rewind("diff", A, B, *more).text
            assert max(len(line) for line in shown.splitlines()) <= int(columns), (columns, more)


def test_a_talk_is_written_as_the_recorder_writes_it(shelf: Shelf, rewind: Rewind) -> None:
    """The sessions of these tests have what two runs are compared by."""
    talk: Talk = refund(begin(shelf, A))
    talk.end()
    journal = (talk.writer.folder / "journal.jsonl").read_text()
    assert journal.count('"sketch":"rs1:') == 3
    assert journal.count('"said":"ra1:') == 3


def test_of_many_changed_steps_the_first_are_shown_and_the_others_counted(rewind: Rewind, shelf: Shelf) -> None:
    for session, price in ((A, 900), (B, 700)):
        talk = begin(shelf, session)
        for number in range(50):
            talk.says(f"What is number {number}?").hears(f"It costs {price + number} euros.")
        talk.end()
    shown = rewind("diff", A, B).text
    assert shown.count("≠ Step") == 40
    assert shown.endswith("\n… and 10 more steps that differ: --full shows them, --stat a line each\n")
    assert rewind("diff", A, B, "--full").text.count("≠ Step") == 50
