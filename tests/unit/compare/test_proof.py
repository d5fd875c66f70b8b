"""Which part of a changed text makes the difference."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.compare.proof import Hunk, HunkSelection, Patchwork, Search, by_sentence, by_word, finer, smallest


def answered(search: Search, turns: Callable[[frozenset[int]], bool]) -> tuple[frozenset[int], int]:
    """What a search finds, and how many probes it took."""
    asked = 0
    try:
        probe = next(search)
        while True:
            asked += 1
            probe = search.send(turns(probe.put_back))
    except StopIteration as found:
        return found.value, asked


def prompt(*, changed: frozenset[int] = frozenset(), count: int = 40) -> str:
    return " ".join(
        f"Rule {n} says {'something else' if n in changed else 'this'} about case {n}." for n in range(count)
    )


def test_both_texts_can_be_made_of_the_pieces() -> None:
    good, bad = prompt(), prompt(changed=frozenset({3, 17})) + " And one more."
    patchwork = by_sentence(good, bad)
    assert patchwork.text(frozenset()) == bad
    assert patchwork.text(frozenset(range(len(patchwork.hunks)))) == good


def test_forty_changed_sentences_are_forty_suspects() -> None:
    patchwork = by_sentence(prompt(), prompt(changed=frozenset(range(40))))
    assert len(patchwork.hunks) == 40


@pytest.mark.parametrize("culprit", range(40))
def test_one_sentence_of_forty_is_found_with_seven_probes_at_most(culprit: int) -> None:
    found, asked = answered(smallest(40), lambda put_back: culprit in put_back)
    assert found == {culprit}
    assert asked <= 7


@pytest.mark.parametrize("culprits", [{0, 39}, {3, 4}, {10, 20, 30}, set(range(5))])
def test_several_sentences_that_are_needed_at_once_are_all_found(culprits: set[int]) -> None:
    found, _ = answered(smallest(40), lambda put_back: culprits <= put_back)
    assert found == culprits


def test_either_of_two_sentences_is_enough_and_one_is_found() -> None:
    found, _ = answered(smallest(40), lambda put_back: bool({5, 30} & put_back))
    assert len(found) == 1 and found <= {5, 30}


def test_every_probe_says_what_is_known_if_nobody_asks_any_further() -> None:
    search = smallest(8)
    probe = next(search)
    assert probe == HunkSelection(frozenset({0, 1, 2, 3}), frozenset(range(8)))
    assert search.send(True).known == {0, 1, 2, 3}


def test_a_single_hunk_needs_no_probe() -> None:
    assert answered(smallest(1), lambda _: False) == (frozenset({0}), 0)


def test_a_sentence_is_taken_apart_into_words() -> None:
    good, bad = "Refund what is due. Be kind.", "Refund only after confirmation. Be harsh."
    coarse = by_sentence(good, bad)
    assert len(coarse.hunks) == 2
    fine = finer(coarse, frozenset({0}))
    assert fine.text(frozenset()) == bad
    assert fine.text(frozenset(range(len(fine.hunks)))) == "Refund what is due. Be harsh."


def test_a_run_of_changed_words_is_one_suspect() -> None:
    assert by_word("a b c d", "a x y d e") == Patchwork(("a", Hunk(" b c", " x y"), " d", Hunk("", " e")))


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_letter_of_either_text_is_lost(good: str, bad: str) -> None:
    for patchwork in (by_sentence(good, bad), by_word(good, bad)):
        everything = frozenset(range(len(patchwork.hunks)))
        assert patchwork.text(frozenset()) == bad
        assert patchwork.text(everything) == good
        assert finer(patchwork, everything).text(frozenset()) == bad


@given(st.integers(1, 24), st.data())
def test_what_is_found_turns_the_outcome_and_nothing_of_it_can_be_spared(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.frozensets(st.integers(0, count - 1), min_size=1, max_size=4))
    found, asked = answered(smallest(count), lambda put_back: needed <= put_back)
    assert found == needed
    assert asked <= count * count + 3 * count
