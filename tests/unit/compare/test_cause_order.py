"""Which of several causes stands first: the one that the parted answer takes up."""

from typing import Any

from rewind.compare.cause import CauseKind, Standing, causes_of
from rewind.compare.divergence import Finding, bisect
from rewind.compare.phrases import cause_title
from unit.compare.chats import Chat, Tape

HANDBOOK = ("read", {"file": "handbook.md"})
LOOK = ("look_up", {"order": "8821"})


def kinds(finding: Finding) -> list[CauseKind]:
    return [cause.kind for cause in finding.causes]


def asking(system: str, handbook: str, says: str, *, user: str = "How long may I return it?", **chat: Any) -> Tape:
    tape = Tape()
    one = Chat(tape, system=system, **chat).user(user).says("", [HANDBOOK])
    one.results(handbook).says(says)
    return tape


def test_the_tool_result_that_the_answer_takes_up_stands_before_a_changed_prompt() -> None:
    a = asking("Be kind.", "Returns: 28 days.", "It is 28 days.")
    b = asking("Be brief and kind.", "Returns: 24 days.", "It is 24 days.", model="claude-opus-5")
    causes = bisect(a.run(), b.run()).causes
    assert [cause.kind for cause in causes] == [CauseKind.TOOL_OUTPUT, CauseKind.MODEL, CauseKind.SYSTEM]
    assert causes[0].standing is Standing.USED
    assert causes[0].evidence == "the answers differ in what it says: 28 → 24"


def test_the_prompt_that_the_answer_takes_up_stands_before_a_tool_result() -> None:
    a = asking("Returns are open for 28 days.", "Shoes come in a box of 12.", "It is 28 days.")
    b = asking("Returns are open for 24 days.", "Shoes come in a box of 10.", "It is 24 days.")
    assert kinds(bisect(a.run(), b.run())) == [CauseKind.SYSTEM, CauseKind.TOOL_OUTPUT]


def test_a_cause_may_lie_many_steps_before_its_effect_and_what_repeats_it_is_not_the_cause() -> None:
    def run(limit: str, says: str, plan: str) -> Tape:
        tape = Tape()
        one = Chat(tape).user("Plan the trip.").says("", [HANDBOOK]).results(f"The limit is {limit} EUR a night.")
        for number in range(16):
            one.says("", [("check", {"hotel": number})]).results(
                f"Hotel {number} is open. {plan if number == 9 else ''}"
            )
        one.says(says)
        return tape

    a = run("140", "I booked one at 140 EUR.", " Budget 140.")
    b = run("95", "I booked one at 95 EUR.", " Budget 95.")
    finding = bisect(a.run(), b.run())
    assert finding.step == (18, 18)
    first, second = finding.causes
    assert first.since.indexes == (2, 2) and first.standing is Standing.USED
    assert second.since.indexes == (12, 12) and second.standing is Standing.FIGURES


def test_what_both_runs_had_read_explains_nothing() -> None:
    a = asking("Item 77 is blue.", "Stock: fine.", "It is on its way.", user="Where is parcel 4711?")
    b = asking("Item 77 is red.", "Stock: 4711 is fine.", "Parcel 4711 is lost.", user="Where is parcel 4711?")
    assert all(cause.standing is not Standing.USED for cause in bisect(a.run(), b.run()).causes)


def test_the_arguments_of_the_parted_call_are_what_it_takes_up() -> None:
    def run(status: str, prompt: str, amount: float) -> Tape:
        tape = Tape()
        one = Chat(tape, system=prompt).user("My money, please.").says("", [LOOK])
        one.results(f'{{"paid": {status}}}').says("A word.", [("refund", {"amount": amount})])
        return tape

    finding = bisect(run("189.00", "Be kind.", 189).run(), run("98.10", "Be harsh.", 98.1).run())
    assert kinds(finding) == [CauseKind.TOOL_OUTPUT, CauseKind.SYSTEM]


def test_empty_and_default_parameters_stand_last() -> None:
    settings = {"max_tokens": 100, "include": [], "temperature": 1, "metadata": {"user_id": "u"}}
    tape_a, tape_b = Tape(), Tape()
    Chat(tape_a).user("Shall I go?").says("Yes, do.")
    Chat(tape_b, settings=settings).user("Shall I stay?").says("No, please.")
    causes = bisect(tape_a.run(), tape_b.run()).causes
    assert [cause.kind for cause in causes] == [CauseKind.INPUT, CauseKind.PARAMETERS]
    assert causes[1].standing is Standing.IDLE


def test_a_parameter_that_says_something_is_told_apart_from_those_that_do_not() -> None:
    tape_a, tape_b = Tape(), Tape()
    Chat(tape_a).user("Shall I go?").says("Yes, do.")
    Chat(tape_b, settings={"max_tokens": 5, "include": []}).user("Shall I go?").says("No, please.")
    causes = bisect(tape_a.run(), tape_b.run()).causes
    assert [(cause.kind, cause.standing) for cause in causes] == [
        (CauseKind.PARAMETERS, Standing.CHANGED),
        (CauseKind.PARAMETERS, Standing.IDLE),
    ]


def test_a_provider_that_failed_is_why_whatever_else_changed() -> None:
    tape = Tape()
    Chat(tape, system="Be harsh.").user("How long may I return it?").fails(529)
    a = asking("Be kind.", "28 days.", "28 days.")
    assert kinds(bisect(a.run(), tape.run())) == [CauseKind.ERROR, CauseKind.SYSTEM]


def test_what_a_helper_read_is_why_its_report_differs_and_what_follows_from_it() -> None:
    """The lead waits for a helper, whose answer comes back to it as a tool's result."""

    def run(found: str, report: str, says: str) -> Tape:
        tape = Tape()
        lead = Chat(tape, system="You lead.").user("Is it safe?").says("", [("ask_helper", {"task": "Look at it."})])
        helper = Chat(tape, system="You help.", prefix="toolu_h").user("Look at it.").says("", [HANDBOOK])
        helper.results(found).says(report)
        lead.results(f"The helper says: {report}").says(says)
        return tape

    good = run("Load: up to 300 kg.", "In short: it holds 300 kg.", "Yes, 300 kg are fine.")
    bad = run("Load: up to 120 kg.", "In short: it holds 120 kg.", "No more than 120 kg.")
    finding = bisect(good.run(), bad.run())
    lead_row = finding.comparison.rows[-1]
    causes = causes_of(finding.comparison, lead_row)
    assert [(cause.kind, cause.since.indexes) for cause in causes] == [
        (CauseKind.TOOL_OUTPUT, (3, 3)),
        (CauseKind.TOOL_OUTPUT, (4, 4)),
    ]
    assert causes[1].standing is Standing.CARRIED and causes[1].evidence == "it is the answer of step 3"


def test_volatile_values_of_results_stand_behind_everything_and_once() -> None:
    def run(seconds: list[str], says: str, **chat: Any) -> Tape:
        tape = Tape()
        one = Chat(tape, **chat).user("Mend it.")
        for took in seconds:
            one.says("", [("run_tests", {})]).results(f"41 passed in {took}s")
        one.says(says)
        return tape

    slow, fast = ["0.31", "0.40", "0.33"], ["0.52", "0.61", "0.48"]
    only = bisect(run(slow, "All is well.").run(), run(fast, "I give up.").run()).causes
    assert [cause.kind for cause in only] == [CauseKind.SAMPLING, CauseKind.TOOL_OUTPUT]
    assert only[1].evidence == "nothing but a duration differs" and only[1].rows == 3
    changed = bisect(run(slow, "All is well.").run(), run(fast, "I give up.", system="Be harsh.").run()).causes
    assert [cause.kind for cause in changed] == [CauseKind.SYSTEM, CauseKind.TOOL_OUTPUT]


def test_a_volatile_value_that_the_answer_takes_up_is_a_cause_like_any_other() -> None:
    a = asking("Be kind.", "41 passed in 0.31s", "It took 0.31s.", user="How fast?")
    b = asking("Be harsh.", "41 passed in 9.87s", "It took 9.87s.", user="How fast?")
    causes = bisect(a.run(), b.run()).causes
    assert [cause.kind for cause in causes] == [CauseKind.TOOL_OUTPUT, CauseKind.SYSTEM]


def test_results_of_one_tool_belong_together_by_their_calls() -> None:
    def run(order: list[str], says: str, price: str) -> Tape:
        tape = Tape()
        results = {"prices": f"It costs {price}.", "status": "All is well."}
        calls = [("open_page", {"page": page, "why": f"to see {page} {says}"}) for page in order]
        Chat(tape).user("What is it?").says("", calls).results(*(results[page] for page in order)).says(says)
        return tape

    finding = bisect(
        run(["prices", "status"], "It is 12.", "12").run(), run(["status", "prices"], "It is 19.", "19").run()
    )
    at_two = causes_of(finding.comparison, finding.comparison.rows[1])
    assert [one.after for one in at_two[0].differences] == ["It costs 19."]


def test_figures_that_no_answer_takes_up_are_no_cause_where_they_differ_in_every_call() -> None:
    def run(sizes: list[int], says: str) -> Tape:
        tape = Tape()
        one = Chat(tape).user("Mend it.")
        for number, size in enumerate(sizes):
            one.says("", [("edit", {"line": number})]).results(f"ok: 1 line replaced, {size} bytes at node-{size % 7}")
        one.says(says)
        return tape

    causes = bisect(run([333, 401, 520], "All is well.").run(), run([790, 655, 812], "I give up.").run()).causes
    assert [(cause.kind, cause.standing) for cause in causes] == [
        (CauseKind.SAMPLING, Standing.SAMPLED),
        (CauseKind.TOOL_OUTPUT, Standing.UNUSED),
    ]
    assert causes[1].evidence == "only figures differ that no answer takes up" and causes[1].rows == 3


def test_a_model_that_was_fallen_back_to_is_named_with_what_failed() -> None:
    tape = Tape()
    one = Chat(tape, model="claude-opus-5").user("How long may I return it?").fails(429).fails(429)
    one.model = "claude-haiku-4-5"
    one.says("I do not know.")
    finding = bisect(asking("Be kind.", "28 days.", "28 days.", model="claude-opus-5").run(), tape.run())
    assert finding.step == (1, 3)
    first = finding.causes[0]
    assert first.kind is CauseKind.MODEL and cause_title(first) == "fell back to another model"
    assert first.evidence == "429 ×2 from claude-opus-5, then answered by claude-haiku-4-5, in the bad run"


def test_the_result_of_a_call_that_only_one_run_made_is_no_reason_for_what_it_did_later() -> None:
    def run(*, more: bool, says: str) -> Tape:
        tape = Tape()
        one = Chat(tape).user("Mend it.").says("", [LOOK, *[("list", {})] * more])
        one.results("It is open.", *["a, b and c"] * more).says("", [("check", {"n": 1})]).results("ok").says(says)
        return tape

    finding = bisect(run(more=False, says="All is well.").run(), run(more=True, says="I give up.").run())
    causes = causes_of(finding.comparison, finding.comparison.rows[-1])
    assert [cause.kind for cause in causes] == [CauseKind.SAMPLING, CauseKind.TOOL_OUTPUT]
    assert causes[1].evidence == "only one run asked for it"


def test_what_a_tool_gave_to_a_step_that_only_one_run_made_is_why_it_made_it() -> None:
    def run(tests: str, *, mends: bool) -> Tape:
        tape = Tape()
        one = Chat(tape).user("Move it to the new client.").says("", [("run_tests", {})]).results(tests)
        if mends:
            one.says("", [("edit", {"file": "net.py"})]).results("ok").says("", [("run_tests", {})]).results("7 passed")
        one.says("Done: all tests pass.")
        return tape

    good, bad = run("7 passed", mends=False), run("ImportError: no name 'fetch'; 1 failed", mends=True)
    finding = bisect(good.run(), bad.run())
    assert finding.causes[0].kind is CauseKind.TOOL_OUTPUT
    assert "ImportError" in (finding.causes[0].differences[0].after or "")
