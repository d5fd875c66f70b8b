"""Bisect gives a good verdict on runs of models that never repeat themselves: the table of ``support.incidents``.

A good verdict has the step where the model first meant something else, the right cause first, and the decisive words
on the screen. Two runs of the same behaviour are called the same.
"""

from collections.abc import Callable

import pytest

from support.effort import ALL, QUICK
from support.incidents.case import RunPair
from support.incidents.catalogue import DEVELOPMENT, HELD_OUT, incident_pairs, names, noise_pairs
from support.incidents.score import IncidentVerdict, good_share, score_table, verdict_of
from support.incidents.stage import LEVELS
from support.planted_recording import Played

pytestmark = [pytest.mark.torture, pytest.mark.timeout(900)]
GOALS = {0: 0.95, 1: 0.92, 2: 0.85, 3: 0.80}
SAME = 0.95
AGENTS = (*DEVELOPMENT, *HELD_OUT)
EVERY = 1 if ALL else 16 if QUICK else 5
"""Of how many incidents one is run."""
PAIRS_OF_EACH = 21 if ALL else 1 if QUICK else 2
"""Pairs of mere noise, of every agent and level."""


@pytest.fixture(scope="module")
def planted() -> list[RunPair]:
    return list(incident_pairs(AGENTS, LEVELS, every=EVERY))


@pytest.fixture(scope="module")
def verdicts(planted: list[RunPair]) -> list[IncidentVerdict]:
    pairs = [*planted, *noise_pairs(AGENTS, LEVELS, of_each=PAIRS_OF_EACH)]
    return [verdict_of(pair) for pair in pairs]


def test_the_table(verdicts: list[IncidentVerdict], record_property: Callable[[str, object], None]) -> None:
    """Printed for people. Of agents that are held out only totals are told."""
    tables = [
        score_table(verdicts, names(agents), title)
        for agents, title in ((DEVELOPMENT, "development"), (HELD_OUT, "held out"))
    ]
    failing = [str(one) for one in verdicts if not one.is_good and one.agent in names(DEVELOPMENT)]
    record_property("shown", "\n\n".join([*tables, *failing]))
    assert {one.level for one in verdicts} == set(LEVELS)
    assert {one.agent for one in verdicts} == set(names(AGENTS))


@pytest.mark.parametrize("level", LEVELS)
def test_verdicts_are_good(verdicts: list[IncidentVerdict], level: int) -> None:
    assert reaches([one for one in verdicts if one.level == level and one.truth is not None], GOALS[level])


@pytest.mark.parametrize("level", LEVELS)
def test_runs_of_the_same_behaviour_are_called_the_same(verdicts: list[IncidentVerdict], level: int) -> None:
    assert reaches([one for one in verdicts if one.level == level and one.truth is None], SAME)


def reaches(verdicts: list[IncidentVerdict], goal: float) -> bool:
    """Whether so many are good. Of a sample, in which one case is worth five percent, two less will do."""
    return good_share(verdicts) + (0 if ALL else 2 / len(verdicts)) >= goal


# ── the incidents themselves ─────────────────────────────────────────────────────────────────────────────────


def test_the_decisive_words_were_recorded(planted: list[RunPair]) -> None:
    """What must be on the screen is in a body of the runs, so a verdict could show it."""
    for pair in planted:
        assert pair.truth is not None
        bodies = [
            text.decode().replace('\\"', '"')  # arguments of tools are JSON in JSON
            for played in (pair.good, pair.bad)
            for both in played.bodies.values()
            for text in both
        ]
        heads = [step.request.head.target for played in (pair.good, pair.bad) for step in played.recording.steps]
        statuses = [
            str(step.response.head.status)
            for step in pair.bad.recording.steps
            if step.response is not None and step.response.head is not None
        ]
        for words in pair.truth.words:
            ways = (words,) if isinstance(words, str) else words
            assert any(way in text for way in ways for text in (*bodies, *heads, *statuses)), (pair.name, words)


def test_noise_is_heard() -> None:
    """From level 1 on, few answers repeat."""
    for level in (1, 2, 3):
        pairs = list(noise_pairs(AGENTS, (level,), of_each=1))
        said = [(_answers(pair.good), _answers(pair.bad)) for pair in pairs]
        assert sum(len(good & bad) for good, bad in said) < 0.25 * sum(len(good) for good, _ in said)


def _answers(played: Played) -> set[str]:
    found = set()
    for step in played.recording.steps:
        answered = played.talk(step).answered
        if answered is not None and len(answered.text) > 20:
            found.add(answered.text)
    return found


def test_the_same_seed_gives_the_same_bytes() -> None:
    one, again = ([*incident_pairs(DEVELOPMENT, (2,), every=9)] for _ in range(2))
    assert [(pair.good.bodies, pair.bad.bodies) for pair in one] == [
        (pair.good.bodies, pair.bad.bodies) for pair in again
    ]
