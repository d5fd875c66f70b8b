"""``rewind bisect``: the screen, what counts as no parting, several runs, JSON, and what cannot be compared."""

import io
import json
import sys
from typing import Any

import pytest

from rewind.errors import ExitCode
from rewind.model.session import Surroundings
from rewind.model.step import StepKind
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer
from unit.cli.talks import ACTIVE, MORNING, STRICT, SYSTEM, Talk, begin, refund, use

GOOD, BAD = "7f3a2b9c", "9b2c0d1e"


@pytest.fixture(autouse=True)
def eighty_columns(rewind: Rewind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def refunds(shelf: Shelf) -> None:
    """A good run, and a bad one with a changed prompt."""
    refund(begin(shelf, GOOD, name="refund-good")).end()
    refund(begin(shelf, BAD, name="refund-bad", minutes=12, system=STRICT), agrees=False).end(exit_code=1)


def chat(talk: Talk, *turns: tuple[str, str]) -> Talk:
    for said, heard in turns:
        talk.says(said).hears(heard)
    return talk


# ── the screen ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_screen_says_where_why_since_when_and_what_it_was_not(rewind: Rewind, refunds: None) -> None:
    ran = rewind("bisect", "refund-good", "refund-bad")
    expected = """\
✗ First divergence at step 2 (llm_call · claude-sonnet-4-6 · anthropic)

  good  7f3a2b9c  refund-good  ✓ ok      2025-11-15 09:02 UTC
  bad   9b2c0d1e  refund-bad   ✗ exit 1  2025-11-15 09:14 UTC

  Step 1   match ✓   "Understood, I'll look into the account." → lookup(…)
  Step 2   DIVERGED ✗
    Good:  "It is active, so I'll proceed."
           → refund({"amount":189.0,"order":"8821"})
    Bad:   "I cannot complete this action without explicit confirmation."

Cause      system prompt changed, from step 1 on (the answer to step 1 was still
           the same)
             … up, check the order, then refund [-what is due-]{+only after
             explicit confirmation+}.
Since      first seen 2025-11-15 09:14 UTC in 9b2c0d1e (the bad run); last with
           the old one: 7f3a2b9c (the good run), 09:02 UTC
Ruled out  model claude-sonnet-4-6 · snapshot claude-sonnet-4-6-20251001 · 2
           tools · max_tokens 1024, temperature 0 · user input · 1 tool result ·
           history
Matched    1 of 3 steps · re-sync: none
"""
    assert ran.text == expected
    assert ran.code == ExitCode.DIFFERENT
    assert ran.talk.splitlines() == [
        f"→ prove it:  rewind bisect {GOOD} {BAD} --prove",
        f"→ try it:    rewind fork {BAD}:2 --set system=@{GOOD}:2",
        f"→ see all:   rewind diff {GOOD} {BAD}",
    ]


def test_code_and_packages_of_both_runs_are_told(rewind: Rewind, shelf: Shelf) -> None:
    for session, agrees, version, dirty in ((GOOD, True, "0.84.0", False), (BAD, False, "0.85.1", True)):
        talk = begin(shelf, session, system=SYSTEM if agrees else STRICT, minutes=0 if agrees else 12)
        talk.headers = (("user-agent", f"Anthropic/Python {version}"),)
        talk.writer.surroundings(Surroundings(commit="a1b2c3d4e5f60718", dirty=dirty, locks={"uv.lock": version}))
        refund(talk, agrees=agrees).end()
    shown = rewind("bisect", GOOD, BAD).text
    expected = """\
Code       git a1b2c3d → a1b2c3d + uncommitted changes · anthropic (python)
           0.84.0 → 0.85.1 · uv.lock changed
Matched    1 of 3 steps · re-sync: none
"""
    assert shown[shown.index("Code") :] == expected


def test_a_long_way_together_is_folded(rewind: Rewind, shelf: Shelf) -> None:
    turns = [(f"Question {number}?", f"Answer {number}.") for number in range(1, 43)]
    chat(begin(shelf, GOOD), *turns, ("And now?", "Yes.")).end()
    chat(begin(shelf, BAD, minutes=1), *turns, ("And now?", "No.")).end()
    shown = rewind("bisect", GOOD, BAD).text
    expected = """\
  Step 1    match ✓   "Answer 1."
  Step 2    match ✓   "Answer 2."
  …         37 steps match
  Step 40   match ✓   "Answer 40."
  Step 41   match ✓   "Answer 41."
  Step 42   match ✓   "Answer 42."
  Step 43   DIVERGED ✗
    Good:  "Yes."
    Bad:   "No."
    Differs in: says yes → says no
"""
    assert shown[shown.index("  Step 1 ") : shown.index("\n\nCause")] + "\n" == expected
    assert "Matched    42 of 43 steps" in shown


def test_steps_that_are_counted_differently_are_named_by_both_numbers(rewind: Rewind, shelf: Shelf) -> None:
    chat(begin(shelf, GOOD), ("Hello.", "Hi."), ("Pay.", "Yes.")).end()
    talk = begin(shelf, BAD, minutes=1).says("Hello.")
    talk.fails(529, "Overloaded").hears("Hi.").says("Pay.").hears("No.").end()
    shown = rewind("bisect", GOOD, BAD).text
    expected = """\
✗ First divergence at step 2 of the good run, 3 of the bad one (llm_call ·
  claude-sonnet-4-6 · anthropic)

  good  7f3a2b9c  ✓ ok  2025-11-15 09:02 UTC
  bad   9b2c0d1e  ✓ ok  2025-11-15 09:03 UTC

  Step 1 / 2   match ✓   "Hi."
  Step 2 / 3   DIVERGED ✗
    Good:  "Yes."
    Bad:   "No."
    Differs in: says yes → says no
"""
    assert shown[: shown.index("\n\nCause")] + "\n" == expected
    assert "           1 step took more tries in one run" in shown


def test_a_long_answer_is_shown_from_where_it_leaves_the_other(rewind: Rewind, shelf: Shelf) -> None:
    lead = "First I went through every receipt that the customer has sent us since March of this year. " * 3
    chat(begin(shelf, GOOD), ("Well?", lead + "So I pay. " + "Details follow. " * 40)).end()
    chat(begin(shelf, BAD, minutes=1), ("Well?", lead + "So I do not pay.")).end()
    shown = rewind("bisect", GOOD, BAD).text
    expected = """\
    Good:  "… the customer has sent us since March of this year. So I pay.
           Details follow. Details follow. Details follow. Details follow.
           Details follow. Details follow. Details follow. Details follow.
           Details follow. Details follow. Details follow. Details follow.
           Details follow. Details follow. Details follow. Details follow. …"
    Bad:   "… the customer has sent us since March of this year. So I do not
           pay."
    Differs in: so i pay → i do not pay
"""
    assert shown[shown.index("    Good:") : shown.index("\n\nCause")] + "\n" == expected


def test_runs_that_do_not_part_are_told_so_and_the_exit_code_is_zero(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, GOOD)).end()
    refund(begin(shelf, BAD, minutes=12)).end()
    ran = rewind("bisect", GOOD, BAD)
    expected = """\
✓ No divergence: 3 of 3 steps match

  good  7f3a2b9c  ✓ ok  2025-11-15 09:02 UTC
  bad   9b2c0d1e  ✓ ok  2025-11-15 09:14 UTC

  Step 1   match ✓   "Understood, I'll look into the account." → lookup(…)
  Step 2   match ✓   "It is active, so I'll proceed." → refund(…)
  Step 3   match ✓   "Done: $189.00 is on its way back to you."

Matched    3 of 3 steps
"""
    assert ran.text == expected
    assert (ran.code, ran.talk) == (ExitCode.OK, "")


def test_ids_and_times_are_no_parting_and_are_told(rewind: Rewind, shelf: Shelf) -> None:
    for session, number in ((GOOD, 1), (BAD, 2)):
        talk = begin(shelf, session, minutes=number, system=f"{SYSTEM} It is 2025-11-15T09:0{number}:00Z.")
        refund(talk).end()
    ran = rewind("bisect", GOOD, BAD)
    assert ran.code == ExitCode.OK
    assert ran.text.startswith("✓ No divergence: 3 of 3 steps match\n")
    assert "           3 steps differ only in ids and times\n" in ran.text


def test_the_same_answers_to_other_requests_are_told_as_exactly_that(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, GOOD)).end()
    refund(begin(shelf, BAD, minutes=12, system=STRICT)).end()
    ran = rewind("bisect", GOOD, BAD)
    expected = """\
≠ Every answer is the same, but what is asked differs, first at step 1 (llm_call
  · claude-sonnet-4-6 · anthropic)

  good  7f3a2b9c  ✓ ok  2025-11-15 09:02 UTC
  bad   9b2c0d1e  ✓ ok  2025-11-15 09:14 UTC

  Step 1   ASKED OTHERWISE ≠
    Both:  "Understood, I'll look into the account." → lookup({"order":"8821"})

Cause      system prompt changed
             … up, check the order, then refund [-what is due-]{+only after
             explicit confirmation+}.
"""
    assert ran.text[: ran.text.index("Since")] == expected
    assert ran.code == ExitCode.DIFFERENT


def test_the_same_tools_in_other_words_are_told_as_exactly_that(rewind: Rewind, shelf: Shelf) -> None:
    for session, words in ((GOOD, "Understood, I'll look."), (BAD, "Let me see.")):
        talk = begin(shelf, session).says("Pay me back.").hears(words, use("lookup", order="8821"))
        talk.brings(ACTIVE).hears("Done.").end()
    same = rewind("bisect", GOOD, BAD)
    assert same.text.startswith("≈ The runs go the same way in other words: 2 of 2 steps match\n")
    assert '  Step 1   match ≈   "Let me see." → lookup' in same.text
    assert same.text.endswith("\nMatched    2 of 2 steps\n           1 answer reworded\n")
    assert same.code == ExitCode.OK
    ran = rewind("bisect", GOOD, BAD, "--exact-words")
    expected = """\
≈ The runs go the same way in other words, first at step 1 (llm_call ·
  claude-sonnet-4-6 · anthropic)

  good  7f3a2b9c  ✓ ok  2025-11-15 09:02 UTC
  bad   9b2c0d1e  ✓ ok  2025-11-15 09:02 UTC

  Step 1   REWORDED ≈
    Good:  "Understood, I'll look." → lookup({"order":"8821"})
    Bad:   "Let me see." → lookup({"order":"8821"})
"""
    assert ran.text[: ran.text.index("\n\nCause")] + "\n" == expected
    assert ran.code == ExitCode.DIFFERENT


def test_a_parallel_call_that_nothing_depends_on_is_no_parting_and_is_told(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, GOOD)).end()
    talk = begin(shelf, BAD, minutes=12)
    talk.says("I want my money back for order 8821.")
    talk.hears("Understood, I'll look into the account.", use("lookup", order="8821"))
    main, talk.messages, talk.system = talk.messages, [], "You write titles."
    talk.says("Title this.")
    title = {"type": "message", "model": talk.snapshot, "content": [{"type": "text", "text": "Refund"}]}
    talk.exchange(title, at=talk.started + 2.1)
    talk.messages, talk.system = main, SYSTEM
    talk.brings(ACTIVE).hears("It is active, so I'll proceed.", use("refund", order="8821", amount=189.0))
    talk.brings('{"refunded": 189.0}').hears("Done: $189.00 is on its way back to you.").end()
    ran = rewind("bisect", GOOD, BAD)
    assert ran.code == ExitCode.OK, ran.text
    assert ran.text.startswith("✓ No divergence: 3 of 3 steps match\n")
    assert "           only in bad: step 2, a parallel call that nothing depends on\n" in ran.text


# ── since when ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_session_with_the_new_prompt_is_named_though_it_was_another_run(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, GOOD)).end()
    refund(begin(shelf, "5c0d91e2", minutes=30)).end()
    refund(begin(shelf, "81aa0001", minutes=60 * 24, system=STRICT)).end()
    refund(begin(shelf, BAD, minutes=60 * 48, system=STRICT), agrees=False).end()
    shown = rewind("bisect", GOOD, BAD).text
    expected = """\
Since      first seen 2025-11-16 09:02 UTC in 81aa0001; last with the old one:
           5c0d91e2, 2025-11-15 09:32 UTC
"""
    assert shown[shown.index("Since") : shown.index("Ruled out")] == expected
    (cause,) = rewind("bisect", GOOD, BAD, "--json").json()["causes"]
    assert cause["since"]["session"] == "81aa0001"
    assert cause["since"]["last_without"]["session"] == "5c0d91e2"


def test_one_run_on_each_side_is_a_pair_however_it_is_named(rewind: Rewind, refunds: None) -> None:
    assert rewind("bisect", "--good", GOOD, "--bad", BAD).data == rewind("bisect", GOOD, BAD).data


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_has_everything_that_the_screen_says(rewind: Rewind, refunds: None) -> None:
    ran = rewind("bisect", GOOD, BAD, "--json")
    assert (ran.code, ran.talk) == (ExitCode.DIFFERENT, "")
    view = ran.json()
    assert view["schema"] == "rewind/bisect@2"
    assert (view["good"]["id"], view["bad"]["id"], view["bad"]["exit_code"]) == (GOOD, BAD, 1)
    assert (view["diverges"], view["answers_part"]) == (True, True)
    assert view["step"] == {"good": 2, "bad": 2}
    assert view["at"]["good"]["calls"] == ['refund({"amount":189.0,"order":"8821"})']
    assert view["at"]["bad"]["words"].startswith("I cannot complete")
    (cause,) = view["causes"]
    assert (cause["kind"], cause["title"]) == ("system", "system prompt changed")
    assert cause["first_seen_at"] == {"good": 1, "bad": 1}
    (difference,) = cause["differences"]
    assert (difference["aspect"], difference["before"], difference["after"]) == ("system", SYSTEM, STRICT)
    assert cause["since"]["session"] == BAD
    assert cause["since"]["time"] == "2025-11-15T09:14:02.000Z"
    assert [fact["kind"] for fact in view["ruled_out"]] == [
        "model",
        "snapshot",
        "tools",
        "parameters",
        "input",
        "tool-output",
        "history",
    ]
    assert (view["matched"], view["total"], view["resync"], view["beside"]) == (1, 3, None, [])
    assert [(step["good"], step["bad"], step["answers_match"]) for step in view["steps"]] == [(1, 1, True)]
    assert view["code"]["same"] is None


def test_json_of_runs_that_do_not_part(rewind: Rewind, refunds: None) -> None:
    ran = rewind("bisect", GOOD, GOOD, "--json")
    view = ran.json()
    assert ran.code == ExitCode.OK
    assert (view["diverges"], view["step"], view["at"], view["causes"]) == (False, None, None, [])
    assert (view["matched"], view["total"]) == (3, 3)


# ── any screen ───────────────────────────────────────────────────────────────────────────────────────────────


HOSTILE = "You\x1b]0;owned\x07 pay \u202eback\u2066.\r\x9b31m"


def test_what_was_recorded_cannot_steer_the_terminal(rewind: Rewind, shelf: Shelf) -> None:
    for session, agrees in ((GOOD, True), (BAD, False)):
        talk = begin(shelf, session, name=f"n\x1b[31m{agrees}", model=f"m\x1b[2J\n{agrees}")
        talk.system = HOSTILE + (" Always." if agrees else " Never.")
        talk.parameters = {"max_tokens": 9, "stop_sequences": [f"\x1b[{agrees}"]}
        talk.says(f"Pay \x1b[1m{agrees}").hears(f"Yes \x1b[5m {agrees}", use(f"t\x1b\n{agrees}", a="\x07")).end()
    for command in ("bisect", "diff"):
        for more in ((), ("--json",)):
            ran = rewind(command, GOOD, BAD, *more)
            assert not any(ord(sign) < 32 and sign != "\n" for sign in ran.text + ran.talk), command
            assert "\x9b" not in ran.text and "\u202e" not in ran.text
    shown = rewind("bisect", GOOD, BAD).text
    assert "\\x1b]0;owned\\x07" in shown
    assert not [line for line in shown.splitlines() if line.startswith(("True", "False"))]


@pytest.mark.parametrize("columns", ["20", "46", "80", "100", "300"])
def test_every_line_fits_the_screen(
    rewind: Rewind, refunds: None, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    widest = max(len(line) for line in rewind("bisect", GOOD, BAD).text.splitlines())
    assert widest <= max(60, min(120, int(columns)))


def test_a_wide_screen_is_used_for_the_steps(rewind: Rewind, refunds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert '"Understood, I\'ll look into the account." → lookup({"order":"8821"})' in rewind("bisect", GOOD, BAD).text


def test_colours_only_help(rewind: Rewind, refunds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rewind("bisect", GOOD, BAD).text
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = rewind("bisect", GOOD, BAD).text
    assert "\x1b[31m[-what is due-]" in painted and "\x1b[32m{+only" in painted
    assert "".join(part.partition("m")[2] if at else part for at, part in enumerate(painted.split("\x1b["))) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert rewind("bisect", GOOD, BAD).text == plain


def test_an_encoding_without_our_signs_gets_plain_ones(
    rewind: Rewind, refunds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (("bisect", GOOD, BAD), ("diff", GOOD, BAD), ("diff", GOOD, BAD, "--stat")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            rewind(*arguments)
        stream.flush()
        shown = stream.buffer.getvalue().decode("ascii")
        assert "\\u" not in shown, arguments
        assert "[-what is due-]" in shown or "--stat" in arguments


# ── what cannot be compared ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", ["bisect", "diff"])
def test_an_unknown_session_is_an_error_with_the_nearest(rewind: Rewind, refunds: None, command: str) -> None:
    for arguments in (("refund-god", "refund-bad"), ("refund-good", "refund-baad"), ("x", "y")):
        ran = rewind(command, *arguments)
        assert (ran.code, ran.data) == (ExitCode.NOT_FOUND, b""), arguments
        assert "Traceback" not in ran.talk
    assert "refund-bad" in rewind(command, "refund-good", "refund-baad").talk


@pytest.mark.parametrize("command", ["bisect", "diff"])
def test_an_ambiguous_session_lists_those_it_may_be(rewind: Rewind, shelf: Shelf, command: str) -> None:
    for session in ("7f3a0000", "7f3a0001"):
        refund(begin(shelf, session)).end()
    ran = rewind(command, "7f3a", "7f3a0000")
    assert ran.code == ExitCode.NOT_FOUND
    assert "7f3a0000" in ran.talk and "7f3a0001" in ran.talk


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "bisect compares two sessions, a good one and a bad one, but got 0."),
        ((GOOD,), "bisect compares two sessions, a good one and a bad one, but got 1."),
        ((GOOD, BAD, GOOD), "bisect compares two sessions, a good one and a bad one, but got 3."),
        (("--good", GOOD), "There is nothing to compare with: --bad is missing."),
        (("--good", "--bad", BAD), "--good needs at least one session."),
        (("--good", GOOD, "--bad"), "--bad needs at least one session."),
        ((GOOD, "--bad", BAD), f"'{GOOD}' follows neither --good nor --bad."),
        ((f"{GOOD}:2", BAD), f"bisect compares whole sessions, not steps ('{GOOD}:2')."),
        (("--good", GOOD, BAD, "--bad", BAD), f"Session {BAD} is given as good and as bad."),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    rewind: Rewind, refunds: None, arguments: tuple[str, ...], said: str
) -> None:
    ran = rewind("bisect", *arguments)
    assert (ran.code, ran.data) == (ExitCode.USAGE, b"")
    assert ran.talk.splitlines()[0] == f"rewind: {said}"


def test_a_session_without_steps_is_not_taken_for_a_run(rewind: Rewind, shelf: Shelf, refunds: None) -> None:
    shelf.add("00000000")
    ran = rewind("bisect", GOOD, "00000000")
    assert (ran.code, ran.data) == (ExitCode.NOT_FOUND, b"")
    assert "Session 00000000 has no steps" in ran.talk


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_damaged_body_is_never_named_as_the_reason(
    rewind: Rewind, shelf: Shelf, refunds: None, options: list[str]
) -> None:
    (pack,) = shelf.home.glob(f"sessions/*{BAD}/pack")
    pack.write_bytes(pack.read_bytes()[:40])
    ran = rewind("bisect", GOOD, BAD, *options)
    assert (ran.code, ran.data) == (ExitCode.ENVIRONMENT, b"")
    assert f"A body of step 2 of session {BAD} is damaged" in ran.talk
    assert f"rewind verify {BAD}" in ran.talk


def test_a_run_that_still_goes_on_is_compared_as_it_stands(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, GOOD)).end()
    running = refund(begin(shelf, BAD, minutes=12, system=STRICT), agrees=False)
    ran = rewind("bisect", GOOD, BAD)
    assert "● running" in ran.text
    assert f"{BAD} is still running; compared as it stands, after 2 steps" in ran.talk
    running.end()


def test_calls_that_are_no_conversation_are_compared_too(rewind: Rewind, shelf: Shelf) -> None:
    for session, status in ((GOOD, 200), (BAD, 500)):
        writer = shelf.begin(session)
        writer.request(a_request(kind=StepKind.HTTP_CALL, provider="http"), b"{}")
        answer: dict[str, Any] = {"ok": status == 200}
        body = json.dumps(answer).encode()
        told = an_answer(len(body))
        assert told.head is not None
        head = type(told.head)(status=status, reason="", headers=told.head.headers)
        writer.response(1, an_answer(len(body), head=head), body)
        writer.end(ended=MORNING, exit_code=0, redactions=0, remarks=())
    ran = rewind("bisect", GOOD, BAD)
    assert ran.code == ExitCode.DIFFERENT
    assert "(http_call" in ran.text
    assert "POST api.example/v1/chat → 500" in ran.text
