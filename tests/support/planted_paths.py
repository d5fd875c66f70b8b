"""Changes of the path: the agent makes another step, though every answer before was the same."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from support.planted_recording import Call
from support.planted_script import Scenario, Talk, Turn
from support.planted_shapes import last_turn

Calls = frozenset[Call | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detour:
    """A program that takes another way, and the step that says so."""

    scenario: Scenario
    how: str
    good: Calls
    """Any of these is the right step of the good run; ``None``: it made none there."""
    bad: Calls


Path = Callable[[Scenario, Random], Detour | None]
"""``None`` where that program has no such way."""


def gives_up(scenario: Scenario, random: Random) -> Detour | None:
    """The agent stops though the model, or the user, wants to go on."""
    talk = scenario.stages[0][0]
    if len(scenario.stages) > 1 or len(talk.turns) < 3:
        return None
    last = random.randint(1, len(talk.turns) - 2)
    helpers = [use.helper for use in talk.turns[last].uses if use.helper is not None]
    missed = Call(helpers[0].name, 0) if helpers else Call(talk.name, last + 1)
    return Detour(
        scenario=scenario.with_talk(replace(talk, stops_after=last)),
        how=f"gives up after turn {last}",
        good=frozenset({missed}),
        bad=frozenset({None}),
    )


def goes_on(scenario: Scenario, random: Random) -> Detour | None:
    """The agent asks once more where it was done before."""
    talk = scenario.stages[-1][0]
    end = len(talk.turns) - 1
    changed = replace(
        talk,
        turns=(*talk.turns, Turn(text=random.choice(["Yes, I am sure.", "On second thought I am not."]))),
        follow_ups={**talk.follow_ups, end: "Check your answer once more. Are you sure?"},
    )
    return Detour(
        scenario=scenario.with_talk(changed),
        how="asks once more at the end",
        good=frozenset({None}),
        bad=frozenset({Call(talk.name, end + 1)}),
    )


def asks_a_reviewer(scenario: Scenario, random: Random) -> Detour | None:
    """A call more in the middle, whose answer the conversation then goes on with."""
    talk = scenario.stages[0][0]
    if len(scenario.stages) > 1 or talk.held or len(talk.turns) < 3:
        return None
    after = random.randint(0, len(talk.turns) - 2)
    review = Talk(
        name="review",
        family="review",
        api=talk.api,
        domain=talk.domain,
        asks="Look at this step of a colleague and say in a sentence what you think of it.\n\nStep: <<answer>>",
        turns=(Turn(text="I would have looked at the details first, but it is not wrong."),),
        setting=replace(talk.setting, system="You review the work of agents.", tools=()),
    )
    rest = (replace(last_turn(talk.domain, random), uses=()),)
    changed = replace(
        talk, turns=(*talk.turns[: after + 1], *rest), reviews={after: review}, follow_ups=_until(talk, after)
    )
    return Detour(
        scenario=scenario.with_talk(changed),
        how=f"asks a reviewer after turn {after}",
        good=frozenset({None, Call(talk.name, after + 1)}),
        bad=frozenset({Call("review", 0)}),
    )


def _until(talk: Talk, turn: int) -> dict[int, str]:
    return {at: text for at, text in talk.follow_ups.items() if at <= turn}


def skips_a_stage(scenario: Scenario, random: Random) -> Detour | None:
    """One of several stages is left out, and the next does without."""
    if len(scenario.stages) < 3:
        return None
    at = random.randrange(len(scenario.stages) - 1)
    (gone,) = scenario.stages[at]
    (after,) = scenario.stages[at + 1]
    changed = replace(
        after,
        asks=after.asks.replace(f"<<answer of {gone.name}>>", "nothing in particular"),
        turns=(last_turn(after.domain, random),),
    )
    stages = tuple(stage for number, stage in enumerate(scenario.stages) if number != at)
    return Detour(
        scenario=replace(scenario, stages=stages).with_talk(changed),
        how=f"skips {gone.name}",
        good=frozenset({Call(gone.name, 0)}),
        bad=frozenset({None, Call(after.name, 0)}),
    )


def asks_another_helper(scenario: Scenario, random: Random) -> Detour | None:
    """The task goes to another sub-agent: another prompt, other tools, and the task in its own form."""
    (talk, *_), *_ = scenario.stages
    handed = [(at, use) for at, turn in enumerate(talk.turns) for use in turn.uses if use.helper is not None]
    if not handed:
        return None
    at, use = handed[0]
    helper = use.helper
    assert helper is not None, "those without one were left out"
    other = replace(
        helper,
        name="archivist",
        family="archivist",
        asks="Search the archive for older cases that look like the one at hand, list three of them.",
        turns=(Turn(text="There is one older case of this kind, and it was closed without a change."),),
        setting=replace(
            helper.setting,
            system="You keep an archive. You never guess, and you list what you find by its year.",
            tools=(),
        ),
    )
    turns = (
        *talk.turns[:at],
        replace(talk.turns[at], uses=(replace(use, helper=other),)),
        last_turn(talk.domain, random),
    )
    return Detour(
        scenario=scenario.with_talk(replace(talk, turns=turns)),
        how="asks another sub-agent",
        good=frozenset({None, Call(helper.name, 0)}),
        bad=frozenset({None, Call("archivist", 0)}),
    )


def asks_about_one_more(scenario: Scenario, random: Random) -> Detour | None:
    """One more of many parallel questions, whose answer is summed up with the others."""
    items, *rest = scenario.stages
    if len(items) < 2:
        return None
    number = len(items) + 1
    first = items[0]
    more = replace(
        first,
        name=f"item {number}",
        asks=f"Say in one sentence what this person needs.\n\nMessage {number}: Please call me back today.",
        turns=(Turn(text="They want somebody to call them back before the evening."),),
    )
    (summary,) = rest[0]
    changed = replace(
        summary, asks=f"{summary.asks}\n{number}. <<answer of {more.name}>>", turns=(last_turn(summary.domain, random),)
    )
    return Detour(
        scenario=replace(scenario, stages=((*items, more), (changed,))),
        how="asks about one more",
        good=frozenset({None}),
        bad=frozenset({Call(more.name, 0)}),
    )


PATHS: tuple[Path, ...] = (gives_up, goes_on, asks_a_reviewer, skips_a_stage, asks_another_helper, asks_about_one_more)
