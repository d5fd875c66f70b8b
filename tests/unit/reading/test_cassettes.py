"""How a cassette grows, and what is read of the runs on it."""

import json

from rewind.model.step import Step
from rewind.reading.bisect import divergence_text
from rewind.reading.cassettes import RecordedRun, as_if_live, extended, live_steps
from support.recorded_runs import portable, run_of, step


def questions(run: RecordedRun) -> list[tuple[int, str]]:
    return [
        (step.index, json.loads(run.blob(step.request.body))["messages"][0]["content"]) for step in run.recording.steps
    ]


def test_new_steps_stand_behind_those_that_were_there() -> None:
    old = portable(step(1, "a"), step(2, "b"))
    run = portable(step(1, "a", tape=1), step(2, "c"), step(3, "b", tape=2), step(4, "c"))
    assert len(live_steps(run.recording)) == 2
    grown = extended(old, old.recording.steps, run_of(run), hosts=("tools.example.com",))
    assert questions(grown) == [(1, "a"), (2, "b"), (3, "c"), (4, "c")]
    assert grown.recording.steps[:2] == old.recording.steps
    assert grown.recording.session.start.hosts == ("tools.example.com",)


def test_what_another_test_added_meanwhile_is_not_added_twice() -> None:
    now = portable(step(1, "a"), step(2, "b"), step(3, "c"))
    played = now.recording.steps[:1]
    run = portable(step(1, "a", tape=1), step(2, "c"), step(3, "c"), step(4, "d"))
    assert questions(extended(now, played, run_of(run))) == [(1, "a"), (2, "b"), (3, "c"), (4, "c"), (5, "d")]


def test_two_workers_that_record_the_same_cassette_at_once_lose_nothing() -> None:
    now = portable(step(1, "a"), step(2, "b"))
    run = portable(step(1, "b"), step(2, "b"), step(3, "c"))
    assert questions(extended(now, (), run_of(run))) == [(1, "a"), (2, "b"), (3, "b"), (4, "c")]


def test_an_answer_is_needed_for_a_step_to_count() -> None:
    whole, _ = step(1, "a")
    lost = Step(request=whole.request, response=None)
    source = portable((lost, b""))
    assert live_steps(source.recording) == []


def test_answers_of_a_replay_may_count_as_live() -> None:
    replayed = run_of(portable(step(1, "a", tape=1), step(2, "b")))
    assert [live.index for live in live_steps(replayed.recording)] == [2]
    assert [live.index for live in live_steps(as_if_live(replayed).recording)] == [1, 2]


def test_where_a_run_left_its_cassette_is_said_in_a_line_or_two() -> None:
    good = run_of(portable(step(1, "pay"), step(2, "thank")))
    bad = run_of(portable(step(1, "refund"), step(2, "thank")))
    assert divergence_text(good, bad).startswith("first divergence: step 1")
    assert divergence_text(good, good) == ""
    assert divergence_text(good, run_of(portable())) == ""
