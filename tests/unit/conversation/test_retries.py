"""Which steps are retries, in runs of any shape."""

from hypothesis import given
from hypothesis import strategies as st

from rewind.conversation.retries import Attempt, retried

moments = st.integers(0, 12).map(float)
attempts_of_one_key = st.lists(
    st.tuples(moments, st.none() | st.integers(0, 6).map(float), st.booleans()), max_size=12
).map(
    lambda rows: [
        Attempt(began, None if lasted is None else began + lasted, failed, step)
        for step, (began, lasted, failed) in enumerate(rows, 1)
    ]
)


def by_looking_at_every_pair(attempts: list[Attempt]) -> list[tuple[int, int]]:
    """The rule itself: the last word before the request was sent."""
    found = []
    for attempt in attempts:
        before = [one for one in attempts if one.ended is not None and one.ended < attempt.began]
        last = max(before, key=lambda one: (one.ended, one.step), default=None)
        if last is not None and last.failed:
            found.append((attempt.step, last.step))
    return found


@given(attempts_of_one_key)
def test_the_last_word_before_a_request_decides(attempts: list[Attempt]) -> None:
    assert list(retried(attempts)) == by_looking_at_every_pair(attempts)


def test_attempts_may_be_an_iterator() -> None:
    attempts = [Attempt(0.0, 1.0, True, 1), Attempt(2.0, 3.0, False, 2)]
    assert list(retried(iter(attempts))) == [(2, 1)]
