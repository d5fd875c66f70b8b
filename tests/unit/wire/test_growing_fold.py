"""Folds over bodies that begin alike: the same results, and what was looked at once is not looked at again."""

import hashlib
import random

import pytest

from rewind.wire import growing_json
from rewind.wire.growing_json import GrowingFold


class Looking:
    """Counts a letter, and the bytes that were looked at."""

    def __init__(self) -> None:
        self.bytes = 0
        self.fold = GrowingFold(0, self.more)

    def more(self, state: int, body: bytes, start: int, end: int) -> int:
        self.bytes += end - start
        return state + body.count(b"a", start, end)


def text(size: int, seed: int) -> bytes:
    source = random.Random(seed)
    return bytes(source.choices(b"abc {}", k=size))


def test_a_body_that_goes_on_costs_what_is_new_of_it() -> None:
    looking = Looking()
    whole = text(2_000_000, 1)

    for end in range(100_000, 2_000_001, 10_000):
        assert looking.fold.of(whole[:end] + b"]}") == whole[:end].count(b"a")

    assert looking.bytes < 3 * len(whole) + 191 * 16 * 1024


def test_conversations_side_by_side_are_each_looked_at_once() -> None:
    looking = Looking()
    talks = [text(400_000, seed) for seed in range(6)]

    for end in range(100_000, 400_001, 20_000):
        for talk in talks:
            assert looking.fold.of(talk[:end]) == talk[:end].count(b"a")

    assert looking.bytes < 3 * sum(map(len, talks)) + 96 * 16 * 1024


@pytest.mark.parametrize("seed", range(5))
def test_any_bodies_come_to_what_each_comes_to_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_json, "_STRIDE", 7)
    monkeypatch.setattr(growing_json, "_KEPT_SIZE", 300)
    source = random.Random(seed)

    def more(state: "hashlib._Hash", body: bytes, start: int, end: int) -> "hashlib._Hash":
        grown = state.copy()
        grown.update(body[start:end])
        return grown

    fold = GrowingFold(hashlib.sha256(), more)
    bodies = [b""]
    for _ in range(300):
        begin = source.choice(bodies[-6:])
        bodies.append(begin[: source.randrange(len(begin) + 1)] + text(source.randrange(40), source.randrange(9)))
        assert fold.of(bodies[-1]).digest() == hashlib.sha256(bodies[-1]).digest()
