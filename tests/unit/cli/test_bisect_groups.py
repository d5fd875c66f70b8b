"""``rewind bisect`` with several runs on a side: which runs those are, the screen, JSON, and what makes no sense."""

from pathlib import Path

import pytest

from rewind.errors import ExitCode
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import STRICT, begin, refund

GOODS = tuple(f"7f3a000{number}" for number in range(5))
BADS = tuple(f"9b2c000{number}" for number in range(4))


@pytest.fixture(autouse=True)
def eighty_columns(rewind: Rewind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def nine_runs(shelf: Shelf) -> None:
    """Five good ones, one of which goes on at the end, and four bad ones with a changed prompt."""
    for number, session in enumerate(GOODS):
        talk = refund(begin(shelf, session, name=f"refund-{number}", minutes=number))
        (talk.says("Thanks!").hears("You are welcome.") if number == 4 else talk).end()
    for number, session in enumerate(BADS):
        talk = begin(shelf, session, name=f"refund-bad-{number}", minutes=10 + number, system=STRICT)
        refund(talk, agrees=False).end(exit_code=1)


def test_several_runs_are_shown_by_what_they_decide_and_what_tells_them_apart(rewind: Rewind, nine_runs: None) -> None:
    ran = rewind("bisect", "--good", *GOODS, "--bad", *BADS)
    expected = """\
✗ They part at step 2: 5 good runs, 4 bad runs

  step              1  2  3 –/4
  good  ×4          ·  ·  ·   -
  good  7f3a0004    ·  ·  ·   ·
  bad   ×4          ·  B  -   -
                       ^  '

Step 2     ·  5 of 5 good, 0 of 4 bad: "It is active, so I'll proceed." →
           refund({"amount":189.0,"order":"8821"})
           B  0 of 5 good, 4 of 4 bad: "I cannot complete this action without
           explicit confirmation."
           p 0.0079
Cause      system prompt changed, from step 1 on
             + "Look the account up, check the order, then refund only after
             explicit confirmation."
             in 4 of 4 bad runs, 0 of 5 good ones · p 0.0079
             always together with it:
               − "Look the account up, check the order, then refund what is
               due."
Tested     3 patterns of who has what; the labels dealt out 126 times, in every
           way, correct p for all of them
"""
    assert ran.text == expected
    assert ran.code == ExitCode.DIFFERENT
    assert ran.talk == "→ two of them in full: rewind bisect 7f3a0000 9b2c0000\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--good", *GOODS, "--bad", *BADS, "--json"),
        ("--json", "--bad", *BADS, "--good", *GOODS),
        ("--bad", *BADS[:2], "--json", "--good", *GOODS, "--bad", *BADS[2:]),
        (*(f"--good={one}" for one in GOODS), *(f"--bad={one}" for one in BADS), "--json"),
        ("--good", "refund-[0-9]", "--bad", "refund-bad-*", "--json"),
        ("--good", "name=refund-* status=ok", "--bad", "status=failed limit=10", "--json"),
        ("--runs", "refund-*", "--bad-if", "exit!=0", "--json"),
        ("--runs", "name=refund", "--bad-if", "status=failed", "--json"),
        ("--runs", *GOODS, *BADS, "--bad-if", "tool:refund absent", "--json"),
        ("--json", "--bad-if", "text~cannot complete", "--bad-if", "steps>40", "--runs", "since=2000-01-01"),
    ],
)
def test_runs_may_be_named_in_many_ways(rewind: Rewind, nine_runs: None, arguments: tuple[str, ...]) -> None:
    view = rewind("bisect", *arguments).json()
    assert view["schema"] == "rewind/bisect_runs@2"
    assert [run["id"] for run in view["good"]] == list(GOODS)
    assert [run["id"] for run in view["bad"]] == list(BADS)
    assert (view["verdict"], view["diverges"], view["left_out"]) == ("cause", True, [])
    column = view["columns"][view["column"]]
    assert [cell["answer"] for cell in column["cells"]] == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert [cell["step"] for cell in column["cells"]] == [2] * 9
    assert column["tells"]["bad"] == {"with": 0, "of": 4} or column["tells"]["good"] == {"with": 0, "of": 5}
    assert [(cause["kind"], cause["column"]) for cause in view["causes"]] == [("system", 0)]
    assert view["causes"][0]["adjusted_p"] <= view["tested"]["significant"]
    assert view["causes"][0]["things"][0]["text"].endswith('confirmation."')


def test_files_are_named_by_a_pattern_too(
    rewind: Rewind, nine_runs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for session in (*GOODS, *BADS):
        side = "good" if session in GOODS else "bad"
        assert rewind("export", session, "--output", f"{side}-{session}.rw").code == 0
    view = rewind("bisect", "--good", "good-*.rw", "--bad", f"{tmp_path}/bad-*.rw", "--json").json()
    assert [len(view[side]) for side in ("good", "bad")] == [5, 4]
    assert view["verdict"] == "cause"


def test_runs_that_nothing_tells_apart_are_told_so(rewind: Rewind, shelf: Shelf) -> None:
    for number, session in enumerate((*GOODS, *BADS)):
        refund(begin(shelf, session, minutes=number)).end()
    ran = rewind("bisect", "--good", *GOODS, "--bad", *BADS)
    assert ran.code == ExitCode.OK
    assert ran.text.startswith("✓ Nothing tells them apart by more than chance: 5 good runs, 4 bad runs\n")


def test_of_two_runs_on_a_side_none_is_believed_and_it_says_how_many_more(rewind: Rewind, nine_runs: None) -> None:
    ran = rewind("bisect", "--good", *GOODS[:2], "--bad", *BADS[:2])
    assert ran.code == ExitCode.OK
    assert ran.text.startswith("? Not enough runs: 2 good runs, 2 bad runs; about 2 more good and 1 more bad\n")
    assert "Nearest    system prompt changed" in ran.text and "in 2 of 2 bad runs, 0 of 2 good ones" in ran.text
    view = rewind("bisect", "--good", *GOODS[:2], "--bad", *BADS[:2], "--json").json()
    assert (view["verdict"], view["diverges"], view["more_runs"]) == ("too-few-runs", False, {"good": 2, "bad": 1})
    assert view["causes"] == [] and view["nearest"][0]["kind"] == "system"


def test_of_many_steps_the_columns_around_the_parting_are_shown(rewind: Rewind, shelf: Shelf) -> None:
    for number, session in enumerate((*GOODS[:4], *BADS)):
        talk = begin(shelf, session, minutes=number)
        for turn in range(1, 21):
            talk.says(f"Question {turn}?").hears(f"The answer is {turn}.")
        talk.says("And now?").hears("Yes, it is." if session in GOODS else "No, it is not.")
        for turn in range(1, 21):
            talk.says(f"Question {turn}?").hears(f"The answer is {turn}.")
        talk.end()
    shown = rewind("bisect", "--good", *GOODS[:4], "--bad", *BADS).text
    expected = """\
  step      …  15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 …
  good  ×4  …   ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  · …
  bad   ×4  …   ·  ·  ·  ·  ·  ·  B  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  · …
                                  ^
"""
    assert "".join(line + "\n" for line in shown.splitlines()[2:6]) == expected


def test_runs_of_which_the_outcome_is_not_known_are_left_out(rewind: Rewind, shelf: Shelf, nine_runs: None) -> None:
    shelf.add("00000000", name="refund-empty")
    view = rewind("bisect", "--runs", "refund-*", "--bad-if", "cost>100", "--bad-if", "exit!=0", "--json").json()
    assert {one["session"]: one["reason"] for one in view["left_out"]} == {"00000000": "it has no steps"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--good", GOODS[0], BADS[0], "--bad", BADS[0]), 2, f"Session {BADS[0]} is given as good and as bad."),
        (("--good", "refund-*", "--bad", "status=failed"), 2, f"Session {BADS[0]} is given as good and as bad."),
        (("--good", "nothing-*", "--bad", BADS[0]), 3, "No session matches \"name='nothing-*'\"."),
        (("--good", "none/*.rw", "--bad", BADS[0]), 3, "No file matches 'none/*.rw'."),
        (("--good", "name=refund since=soon", "--bad", BADS[0]), 2, "'soon' is neither a span"),
        (("--good", "name=refund ok", "--bad", BADS[0]), 2, "'ok' in 'name=refund ok' is not KEY=VALUE with a key of"),
        (("--good", "nam=refund", "--bad", BADS[0]), 2, "'nam' is not a word of a query: name, model, since,"),
        (("--good", "status=fine", "--bad", BADS[0]), 2, "'fine' is not a status: ok, failed, running,"),
        (("--good", "name=a name=b", "--bad", BADS[0]), 2, "name= is given twice in 'name=a name=b'."),
        (("--good", "limit=few", "--bad", BADS[0]), 2, "limit=few is not a number."),
        (("--runs", "refund-*"), 2, "--bad-if is missing: --runs says which runs,"),
        (("--bad-if", "exit!=0"), 2, "--runs is missing: --runs says which runs,"),
        (("--runs", "refund-*", "--bad-if", "exit!=0", "--good", GOODS[0]), 2, "--runs and --bad-if sort one set"),
        (("--runs", "refund-*", "--bad-if", "exit is 0"), 2, "'exit is 0' is not a test that --bad-if knows."),
        (("--runs", "refund-*", "--bad-if", "exit>7"), 3, "All 9 runs are good by 'exit>7': there is nothing to"),
        (("--runs", "refund-*", "--bad-if", "exit>0", "--prove"), 2, "--prove takes one good run and one bad run."),
        (("--good", *GOODS, "--bad", *BADS, "--exact-words"), 2, "--exact-words takes one good run and one bad run"),
        (("--runs", "--bad-if", "exit>7"), 2, "--runs needs at least one session."),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    rewind: Rewind, nine_runs: None, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ran = rewind("bisect", *arguments)
    assert (ran.code, ran.data) == (code, b"")
    first, *more = ran.talk.splitlines()
    assert first.startswith(f"rewind: {said}") and more, ran.talk
