"""What all bad runs share, and no good run has."""

from rewind.compare.cause import CauseKind
from rewind.compare.groups import GroupFinding, compare_groups
from unit.compare.chats import Chat, Tape

KIND, HARSH = "Be kind.", "Be harsh."


def one_run(answer: str, *, system: str = KIND, given: str = "active", extra: bool = False) -> Tape:
    tape = Tape()
    chat = Chat(tape, system=system, prefix=f"toolu_{id(tape)}").user("Refund me.").says("Let me look.", [("look", {})])
    if extra:
        chat.results(given).says("Hm, once more.", [("look", {})])
    chat.results(given).says(answer)
    return tape


def parted(goods: list[Tape], bads: list[Tape]) -> GroupFinding:
    return compare_groups([tape.run() for tape in goods], [tape.run() for tape in bads])


def kinds(parting: GroupFinding) -> list[CauseKind]:
    return [one.kind for one in parting.shared]


def test_what_all_bad_runs_share_is_found_though_each_differs_otherwise() -> None:
    goods = [one_run("Yes."), one_run("Yes.", given="frozen"), one_run("Yes, sure.")]
    bads = [one_run("No.", system=HARSH), one_run("No, sorry.", system=HARSH, given="frozen")]
    parting = parted(goods, bads)
    assert parting.at == 1
    assert kinds(parting) == [CauseKind.SYSTEM]
    assert parting.shared[0].column == 0
    assert [(one.before, one.after) for one in parting.shared[0].differences] == [(KIND, HARSH)]


def test_what_some_good_run_has_too_is_no_reason() -> None:
    goods = [one_run("Yes."), one_run("Yes.", system=HARSH)]
    assert kinds(parted(goods, [one_run("No.", system=HARSH), one_run("No.", system=HARSH)])) == []


def test_what_only_some_bad_runs_have_is_no_reason() -> None:
    assert kinds(parted([one_run("Yes.")], [one_run("No.", given="frozen"), one_run("No.")])) == []


def test_runs_that_say_the_same_are_one_cluster_in_a_column() -> None:
    parting = parted([one_run("Yes."), one_run("Sure.")], [one_run("No."), one_run("Yes.")])
    assert [column.answers for column in parting.columns] == [(0, 0, 0, 0), (0, 1, 2, 0)]
    assert parting.at is None


def test_times_in_a_prompt_are_no_reason() -> None:
    def at(time: str) -> str:
        return f"Be kind. It is {time}."

    goods = [one_run("Yes.", system=at("2026-11-15T09:14:02Z")), one_run("Yes.", system=at("2026-11-15T10:14:02Z"))]
    bads = [one_run("No.", system=at("2026-11-16T09:14:02Z"))]
    parting = parted(goods, bads)
    assert parting.at == 1 and kinds(parting) == []


def test_a_tool_output_that_all_bad_runs_got_is_the_reason() -> None:
    goods = [one_run("Yes."), one_run("Sure.")]
    bads = [one_run("No.", given="frozen"), one_run("Never.", given="frozen")]
    parting = parted(goods, bads)
    assert kinds(parting) == [CauseKind.TOOL_OUTPUT]
    assert parting.shared[0].differences[0].after == "frozen"


def test_a_step_that_all_bad_runs_make_has_a_column_of_its_own() -> None:
    parting = parted([one_run("Yes."), one_run("Yes.")], [one_run("No.", extra=True), one_run("No.", extra=True)])
    assert len(parting.columns) == 3
    assert parting.at is not None
