"""Which move of one run belongs to which of the other."""

from rewind.compare.align import align
from unit.compare.chats import Chat, Tape


def indexes(a: Tape, b: Tape) -> list[tuple[int | None, int | None]]:
    return [row.indexes for row in align(a.run(), b.run()).rows]


def a_chat(*turns: str) -> Tape:
    tape = Tape()
    chat = Chat(tape)
    for turn in turns:
        chat.user(turn).says(f"Answer to {turn}.")
    return tape


def test_equal_runs_are_paired_step_by_step() -> None:
    assert indexes(a_chat("one", "two", "three"), a_chat("one", "two", "three")) == [(1, 1), (2, 2), (3, 3)]


def test_a_step_more_does_not_put_the_later_ones_out_of_step() -> None:
    assert indexes(a_chat("one", "two", "three"), a_chat("one", "extra", "two", "three")) == [
        (1, 1),
        (None, 2),
        (2, 3),
        (3, 4),
    ]


def test_a_step_less_is_made_by_the_first_run_only() -> None:
    assert indexes(a_chat("one", "two", "three"), a_chat("one", "three")) == [(1, 1), (2, None), (3, 2)]


def test_a_changed_step_is_paired_with_what_stands_in_its_place() -> None:
    assert indexes(a_chat("one", "two", "three"), a_chat("one", "2", "three")) == [(1, 1), (2, 2), (3, 3)]


def test_repeated_turns_are_paired_in_order() -> None:
    again = ["go on"] * 5
    assert indexes(a_chat("one", *again), a_chat("one", *again, "go on")) == [*((n, n) for n in range(1, 7)), (None, 7)]


def test_the_end_is_found_again_behind_a_stretch_that_differs() -> None:
    ours = a_chat("one", "a", "b", "c", "last", "very last")
    theirs = a_chat("one", "x", "last", "very last")
    assert indexes(ours, theirs)[-2:] == [(5, 3), (6, 4)]


def test_parallel_conversations_may_come_in_any_order() -> None:
    ours, theirs = Tape(), Tape()
    for tape, order in ((ours, "abc"), (theirs, "cab")):
        for name in order:
            Chat(tape).user(f"Sum up chapter {name}.").says(f"Chapter {name} in short.")
    alignment = align(ours.run(), theirs.run())
    assert sorted(row.indexes for row in alignment.rows) == [(1, 2), (2, 3), (3, 1)]
    assert alignment.reordered == 1


def test_one_more_parallel_conversation_has_no_partner() -> None:
    ours, theirs = Tape(), Tape()
    for tape, names in ((ours, "ab"), (theirs, "axb")):
        for name in names:
            Chat(tape).user(f"Sum up chapter {name}.").says(f"Chapter {name} in short.")
    rows = align(ours.run(), theirs.run()).rows
    assert [row.indexes for row in rows] == [(1, 1), (None, 2), (2, 3)]
    assert [row.shared for row in rows] == [True, False, True]


def test_calls_that_branch_off_one_history_may_come_in_any_order() -> None:
    ours, theirs = Tape(), Tape()
    for tape, order in ((ours, ("left", "right")), (theirs, ("right", "left"))):
        trunk = Chat(tape).user("one").says("A long enough answer to be told from all others here.")
        for turn in order:
            branch = Chat(tape, messages=list(trunk.messages))
            branch.user(turn).says(f"Answer to {turn}.")
    assert sorted(indexes(ours, theirs), key=str) == [(1, 1), (2, 3), (3, 2)]


def test_a_failed_try_belongs_to_the_move_that_came_of_it() -> None:
    ours, theirs = a_chat("one", "two"), Tape()
    chat = Chat(theirs).user("one").says("Answer to one.").user("two")
    chat.fails().fails().says("Answer to two.")
    rows = align(ours.run(), theirs.run()).rows
    assert [row.indexes for row in rows] == [(1, 1), (2, 4)]
    assert rows[1].b is not None and rows[1].b.failures == (2, 3)


def test_the_main_conversation_is_paired_however_much_was_changed() -> None:
    ours, theirs = Tape(), Tape()
    Chat(ours, system="Be kind.").user("one").says("yes")
    Chat(theirs, system="Be harsh.").user("something else").says("no")
    assert indexes(ours, theirs) == [(1, 1)]
