"""Pairs of runs with a known reason why they differ, or with none: what a comparison must name is known beforehand.

Every case is drawn from its own seed: a program (see ``planted_shapes``), a change in it (``planted_changes``,
``planted_paths``), and noise on top (``planted_style``). Both programs are run by a simulated agent that speaks real
APIs (``planted_agent``), so what follows from a change is not written by hand.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, count, cycle, islice
from random import Random

from rewind.compare.cause import CauseKind
from support.planted_agent import play
from support.planted_answers import failed, parted
from support.planted_changes import CHANGES
from support.planted_paths import PATHS, Calls, Detour
from support.planted_recording import Call, Played
from support.planted_script import Failure, Planted, Scenario, Spot, Talk, Turn
from support.planted_shapes import SHAPES, snapshot_of
from support.planted_style import Noise, Style

Steps = frozenset[int | None]
Shape = Callable[[Random], Scenario]

_SMALL_MODELS = {
    "anthropic": "claude-haiku-4-5",
    "chat": "gpt-4o-mini",
    "responses": "gpt-5-mini",
    "gemini": "gemini-2.5-flash",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two runs, and what is to be said of them."""

    name: str
    shape: str
    good: Played
    bad: Played
    planted: tuple[CauseKind, ...]
    """In the order of evidence; none where the runs differ in noise only."""
    noise: frozenset[Noise]
    good_steps: Steps = frozenset({None})
    """Any of these is the right step of the good run; ``None``: it made none there."""
    bad_steps: Steps = frozenset({None})

    def is_there(self, step: tuple[int | None, int | None]) -> bool:
        """Whether that is where the runs part."""
        return step != (None, None) and step[0] in self.good_steps and step[1] in self.bad_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    """A changed program before it is run."""

    scenario: Scenario
    how: str
    good: Calls
    bad: Calls
    planted: tuple[CauseKind, ...]


# ── the cases ────────────────────────────────────────────────────────────────────────────────────────────────


def planted_cases(*, of_each_kind: int = 40, of_pairs: int = 130) -> Iterator[Case]:
    """Cases with one cause, as many of every kind, and cases with two."""
    for kind in CauseKind:
        yield from islice(_cases(kind.name.lower()), of_each_kind)
    pairs = [
        f"{first.name}+{second.name}".lower()
        for first, second in combinations(CauseKind, 2)
        if first in CHANGES
        and (second in CHANGES or second is CauseKind.ERROR)
        # Of two models nobody can say that one is a snapshot of the other.
        and (first, second) != (CauseKind.MODEL, CauseKind.SNAPSHOT)
    ]
    sources = cycle([_cases(pair) for pair in pairs])
    yield from (next(source) for source in islice(sources, of_pairs))


def noise_cases(*, of_each_kind: int = 9, mixed: int = 110) -> Iterator[Case]:
    """Cases with one kind of noise, and cases with many."""
    for noise in Noise:
        yield from islice(_cases(f"noise {noise.name.lower()}", last=of_each_kind), of_each_kind)
    yield from islice(_cases("noise mixed"), mixed)


def _cases(label: str, last: int | None = None) -> Iterator[Case]:
    """Of these causes, or of that noise, on all shapes in turn; without end unless one is told."""
    for number in count() if last is None else range(last):
        case = case_of(f"{label}/{number}")
        if case is not None:
            yield case


def case_of(seed: str) -> Case | None:
    """The case of that name, such as ``system/7``, ``model+history/12`` or ``noise retry/3``.

    ``None`` where the shape of that number has no place for these causes, or that noise cannot be heard in it.
    """
    label, _, number = seed.partition("/")
    shape = SHAPES[int(number) % len(SHAPES)]
    kind, _, noise = label.partition(" ")
    if kind == "noise":
        return _noise_case(seed, shape, noise)
    return _planted_case(seed, shape, tuple(CauseKind[name.upper()] for name in kind.split("+")))


def _planted_case(seed: str, shape: Shape, kinds: tuple[CauseKind, ...]) -> Case | None:
    random = Random(seed)
    scenario = shape(random)
    variant = _variant(scenario, kinds, random)
    if variant is None:
        return None
    noise = frozenset(random.sample(list(Noise), k=random.choice([0, 0, 1, 3, 6])))
    turned = CauseKind.ERROR not in kinds and random.random() < 0.25
    return _played(seed, scenario, variant, noise, random, turned=turned)


def _noise_case(seed: str, shape: Shape, named: str) -> Case | None:
    nowhere: Calls = frozenset()
    for again in range(5):
        random = Random(f"{seed}:{again}")
        scenario = shape(random)
        several = random.sample(list(Noise), k=random.randint(3, len(Noise)))
        noise = frozenset(several if named == "mixed" else [Noise[named.upper()]])
        same = _Variant(scenario=scenario, how="the same", good=nowhere, bad=nowhere, planted=())
        case = _played(seed, scenario, same, noise, random, turned=False)
        if (case.good.recording.steps, case.good.bodies) != (case.bad.recording.steps, case.bad.bodies):
            return case
    return None


# ── planting ─────────────────────────────────────────────────────────────────────────────────────────────────


def _variant(scenario: Scenario, kinds: tuple[CauseKind, ...], random: Random) -> _Variant | None:
    if kinds == (CauseKind.PATH,):
        ways = [way for path in PATHS if (way := path(scenario, random)) is not None]
        return _detour(random.choice(ways)) if ways else None
    for spot in _spots(scenario, random):
        planted = _planted_at(scenario, spot, kinds, random)
        if planted is not None:
            at = _parting(scenario, planted.scenario, spot)
            return _Variant(scenario=planted.scenario, how=planted.how, good=at, bad=at, planted=kinds)
    return None


def _detour(way: Detour) -> _Variant:
    return _Variant(scenario=way.scenario, how=way.how, good=way.good, bad=way.bad, planted=(CauseKind.PATH,))


def _spots(scenario: Scenario, random: Random) -> list[Spot]:
    spots = [Spot(talk=talk.name, turn=turn) for talk in scenario.talks for turn in range(len(talk.turns))]
    random.shuffle(spots)
    return spots


def _planted_at(scenario: Scenario, spot: Spot, kinds: tuple[CauseKind, ...], random: Random) -> Planted | None:
    told = [f"{spot.talk} parts at turn {spot.turn}"]
    # Who answered is told by answers, not by errors.
    told_before = kinds == (CauseKind.SNAPSHOT, CauseKind.ERROR)
    if told_before and not spot.turn:
        return None
    for kind in kinds:
        if kind in CHANGES:
            planted = CHANGES[kind](scenario, replace(spot, turn=spot.turn - told_before), random)
            if planted is None:
                return None
            scenario = planted.scenario
            told.append(planted.how)
    if CauseKind.ERROR in kinds:
        last = failed(scenario, spot, random, refused=len(kinds) > 1 and random.random() < 0.7)
    else:
        last = parted(scenario, spot, random)
    return replace(last, how="; ".join([*told, last.how]))


def _parting(before: Scenario, after: Scenario, spot: Spot) -> Calls:
    """Where the model first *does* something else: the same tools in other words do not change the way."""
    talk = after.talk(spot.talk)
    old, new = before.talk(spot.talk).turns[spot.turn], talk.turns[spot.turn]
    reworded = bool(new.uses) and old.uses == new.uses and spot.turn not in talk.failures
    return frozenset({Call(spot.talk, spot.turn + reworded)})


# ── playing ──────────────────────────────────────────────────────────────────────────────────────────────────


def _played(
    seed: str, scenario: Scenario, variant: _Variant, noise: frozenset[Noise], random: Random, *, turned: bool
) -> Case:
    """Both programs run; ``turned``: the changed one is the good one."""
    hands = [Style.of(seed), Style.of(seed, noise)]
    noisy = random.random() < 0.5
    programs = [_with_retry(scenario, noise, random) if noisy else scenario, variant.scenario]
    programs[1] = programs[1] if noisy else _with_retry(programs[1], noise, random)
    extras: list[tuple[Talk, float] | None] = [None, None]
    if Noise.EXTRA in noise:
        extras[random.randrange(2)] = _aside(scenario, random)
    good, bad = (play(program, hand, extra=extra) for program, hand, extra in zip(programs, hands, extras, strict=True))
    good_steps, bad_steps = _steps(good, variant.good), _steps(bad, variant.bad)
    if turned:
        good, bad, good_steps, bad_steps = bad, good, bad_steps, good_steps
    told = ", ".join(sorted(noise)) or "no noise"
    return Case(
        name=f"{seed} ({scenario.shape}): {variant.how}; {told}{'; turned' * turned}",
        shape=scenario.shape,
        good=good,
        bad=bad,
        planted=variant.planted,
        noise=noise,
        good_steps=good_steps,
        bad_steps=bad_steps,
    )


def _steps(played: Played, calls: Calls) -> Steps:
    return frozenset(None if call is None else played.indexes[call][-1] for call in calls)


def _with_retry(scenario: Scenario, noise: frozenset[Noise], random: Random) -> Scenario:
    """Some call fails once or twice before it succeeds."""
    if Noise.RETRY not in noise:
        return scenario
    talk = random.choice(scenario.talks)
    turn = random.randrange(len(talk.turns))
    if turn in talk.failures:
        return scenario
    failure = Failure(status=random.choice([429, 503, 529, 200]), attempts=random.choice([1, 2]), recovers=True)
    return scenario.with_talk(replace(talk, failures={**talk.failures, turn: failure}))


def _aside(scenario: Scenario, random: Random) -> tuple[Talk, float]:
    """A call that nothing depends on, made while another is under way."""
    main = scenario.talks[0]
    model = _SMALL_MODELS[main.api]
    asks, says = random.choice(
        [
            (f"Write a title for a conversation that begins so:\n{main.domain.tasks[0]}", "Help with an order"),
            (f"Is this message safe? Answer with yes or no.\n{main.domain.tasks[1]}", "yes"),
        ]
    )
    setting = replace(
        main.setting,
        model=model,
        snapshot=snapshot_of(model),
        system="You look after other agents' conversations.",
        tools=(),
        parameters={"limit": 50},
    )
    talk = Talk(
        name="aside",
        family="aside",
        api=main.api,
        domain=main.domain,
        asks=asks,
        turns=(Turn(text=says),),
        setting=setting,
    )
    return talk, random.random()
