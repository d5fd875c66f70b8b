"""Comparing two runs takes time that grows with the runs, and not with their square or worse."""

import random
from collections.abc import Callable

import pytest

from rewind.compare.comparison import Comparison
from rewind.compare.delta import Aspect
from rewind.compare.run import ComparedRun
from support.effort import in_short
from support.operations import growth
from unit.compare.chats import Chat, Tape, sketched

LINEAR = 4.8
"""Four times as many steps may take so many times as much."""


def talk(turns: int, seed: str, *, alike: bool, edited: bool) -> ComparedRun:
    """A conversation; ``edited``: the agent marks what it sends back of an answer. ``alike``: only a few words of each
    message are its own."""
    source = random.Random(seed)
    usual = [f"word{n}" for n in range(20)]

    def words() -> str:
        own = [f"{source.getrandbits(40):x}" for _ in range(6 if alike else 20)]
        return " ".join([*usual, *own] if alike else own)

    chat = Chat(Tape(), prefix=f"toolu_{seed}")
    chat.user(words())
    for _ in range(turns):
        chat.says(words(), [("look", {"for": words()})])
        if edited:
            said, use = chat.messages[-1]["content"]
            chat.messages[-1] = {"role": "assistant", "content": [{**said, "text": said["text"] + " (noted)"}, use]}
        chat.results(words())
    return sketched(chat.tape.run())


@pytest.mark.parametrize("edited", in_short([True, False]))
@pytest.mark.parametrize("alike", in_short([True, False]))
def test_two_conversations_that_differ_throughout(alike: bool, edited: bool) -> None:
    def work(turns: int) -> Callable[[], object]:
        one, other = (talk(turns, seed, alike=alike, edited=edited) for seed in "ab")

        def compared() -> None:
            comparison = Comparison(one, other)
            for row in comparison.rows:
                if row.a is not None and row.b is not None:
                    comparison.relation(row)

        return compared

    assert growth(work, 10) < LINEAR


def test_each_edit_of_a_history_is_told_once_at_the_step_where_it_is_seen_first() -> None:
    comparison = Comparison(*(talk(12, seed, alike=True, edited=True) for seed in "ab"))
    for row in comparison.rows[1:]:
        assert row.a is not None
        found = [one for one in comparison.differences(row) if one.aspect is Aspect.HISTORY]
        assert len(found) == 1, "the mark behind the last answer, and nothing that was seen before"
        assert found[0].before is not None and found[0].before.count("(noted)") == 1
