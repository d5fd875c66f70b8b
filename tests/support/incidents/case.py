"""Incidents: two runs of one agent, one good and one bad, whose reason to part is known; and pairs that only word
things otherwise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random

from support.incidents.stage import WIRE, Meant, Over, Run, Setup
from support.planted_recording import Played

Words = Sequence[str | tuple[str, ...]]
"""All of these must be on the screen; of a tuple any one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What goes wrong."""

    name: str
    kind: str
    """The kind of truth, for tables."""
    causes: frozenset[str]
    """Names of :class:`rewind.compare.cause.CauseKind` that are right as the first cause."""
    change: Callable[[Setup, Random], Setup]
    words: Callable[[Setup, Setup], Words]
    """The decisive words, of the good setup and the bad one."""
    prepare: Callable[[Setup], Setup] = lambda setup: setup
    """The good world, where it must be a certain one."""


def incident(
    name: str,
    kind: str,
    causes: str,
    change: Callable[[Setup, Random], Setup],
    words: Callable[[Setup, Setup], Words],
    *,
    prepare: Callable[[Setup], Setup] = lambda setup: setup,
) -> Incident:
    return Incident(name=name, kind=kind, causes=frozenset(causes.split()), change=change, words=words, prepare=prepare)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAgent:
    """A program that can be run in many worlds, and what can go wrong with it."""

    name: str
    setup: Callable[[Random], Setup]
    play: Callable[[Run], None]
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is to be said of two runs."""

    good_steps: frozenset[int]
    """Any of them is right; none where the good run made no such call."""
    bad_steps: frozenset[int]
    causes: frozenset[str]
    words: Words
    kind: str
    meant: tuple[str, str]
    """What the model meant to do there in either run, for those who look into a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair:
    """Two runs; ``truth`` is ``None`` where they went the same way."""

    name: str
    agent: str
    level: int
    good: Played
    bad: Played
    truth: Truth | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """A run, and what the model meant in it."""

    played: Played
    log: tuple[Meant, ...]


def run_agent(agent: ScriptedAgent, setup: Setup, *, seed: str, tag: str, level: int) -> LoggedRun:
    run = Run(setup, seed=seed, tag=tag, level=level)
    exit_code = 0
    try:
        agent.play(run)
    except Over:
        exit_code = 1
    return LoggedRun(played=run.played(exit_code=exit_code), log=tuple(run.log))


def incident_pair(agent: ScriptedAgent, planted: Incident, level: int, number: int = 0) -> RunPair:
    """The incident at that level of noise; another number is another world."""
    name = f"{agent.name}/{planted.name}" + (f"#{number}" if number else "")
    setup = planted.prepare(agent.setup(Random(name)))
    changed = planted.change(setup, Random(f"{name}:change"))
    good = run_agent(agent, setup, seed=name, tag=f"good{level}", level=level)
    bad = run_agent(agent, changed, seed=name, tag=f"bad{level}", level=level)
    truth = _truth(planted, setup, changed, good, bad)
    assert truth is not None, f"{name}: the incident has no effect"
    return RunPair(name=f"{name}@{level}", agent=agent.name, level=level, good=good.played, bad=bad.played, truth=truth)


def noise_pair(agent: ScriptedAgent, level: int, number: int) -> RunPair:
    """Two runs of the same behaviour."""
    name = f"{agent.name}/noise#{number}"
    setup = agent.setup(Random(name))
    one, other = (run_agent(agent, setup, seed=name, tag=f"{tag}{level}", level=level) for tag in ("one", "other"))
    assert not _partings(one, other), f"{name}: the model meant something else"
    return RunPair(name=f"{name}@{level}", agent=agent.name, level=level, good=one.played, bad=other.played, truth=None)


# ── the truth ────────────────────────────────────────────────────────────────────────────────────────────────

_Parting = tuple[Meant | None, Meant | None]


def _truth(planted: Incident, setup: Setup, changed: Setup, good: LoggedRun, bad: LoggedRun) -> Truth | None:
    chosen = _first_partings(good, bad)
    if not chosen:
        return None
    good_steps, bad_steps = parting_steps(good, bad)
    return Truth(
        good_steps=good_steps,
        bad_steps=bad_steps,
        causes=planted.causes,
        words=planted.words(setup, changed),
        kind=planted.kind,
        meant=(_key(chosen[0][0]) or "—", _key(chosen[0][1]) or "—"),
    )


def parting_steps(good: LoggedRun, bad: LoggedRun) -> tuple[frozenset[int], frozenset[int]]:
    """Where the model first meant something else, in the steps of either run; several where calls ran in parallel."""
    chosen = _first_partings(good, bad)
    return (
        frozenset(step for meant, _ in chosen for step in _steps(good.played, meant)),
        frozenset(step for _, meant in chosen for step in _steps(bad.played, meant)),
    )


def _first_partings(good: LoggedRun, bad: LoggedRun) -> list[_Parting]:
    """The first of all conversations, and those that cannot have known of it."""
    partings = sorted(_partings(good, bad), key=lambda parting: _moment(parting, good, bad))
    if not partings:
        return []
    wire = [one for one in partings if _talk(one).startswith(WIRE)]
    models = [one for one in partings if one not in wire]
    # What the world answered counts as well as the first thing that a model made of it.
    if not models or partings[0] in wire:
        return [partings[0], *models[:1]]
    first, end = models[0], _end(models[0], good, bad)
    return [one for one in models if one is first or _moment(one, good, bad) < end or _kin(one) == _kin(first) != ""]


def _talk(parting: _Parting) -> str:
    (meant, *_) = (meant for meant in parting if meant is not None)
    return meant.call.talk


def _kin(parting: _Parting) -> str:
    """What conversations share that run side by side and never hear of each other: ``scout`` of ``scout Granite``."""
    kin, _, own = _talk(parting).partition(" ")
    return kin if own else ""


def _partings(good: LoggedRun, bad: LoggedRun) -> list[_Parting]:
    """Of every conversation, the first call at which the model meant something else."""
    ours, theirs = _by_talk(good.log), _by_talk(bad.log)
    found = []
    for talk in dict.fromkeys([*ours, *theirs]):
        pairs = zip_longest(ours.get(talk, ()), theirs.get(talk, ()))
        parting = next((pair for pair in pairs if _key(pair[0]) != _key(pair[1])), None)
        if parting is not None:
            found.append(parting)
    return found


def _by_talk(log: Sequence[Meant]) -> Mapping[str, list[Meant]]:
    found: dict[str, list[Meant]] = {}
    for meant in log:
        found.setdefault(meant.call.talk, []).append(meant)
    return found


def _key(meant: Meant | None) -> str | None:
    return None if meant is None else meant.key


def _steps(played: Played, meant: Meant | None) -> tuple[int, ...]:
    return () if meant is None else played.indexes[meant.call]


def _moment(parting: _Parting, good: LoggedRun, bad: LoggedRun) -> float:
    return min(began for began, _ in _spans(parting, good, bad))


def _end(parting: _Parting, good: LoggedRun, bad: LoggedRun) -> float:
    """Until when a call cannot have known of this one."""
    return min(end for _, end in _spans(parting, good, bad))


def _spans(parting: _Parting, good: LoggedRun, bad: LoggedRun) -> Iterator[tuple[float, float]]:
    for run, meant in zip((good, bad), parting, strict=True):
        if meant is not None:
            start = run.played.recording.session.start.started
            steps = {step.index: step for step in run.played.recording.steps}
            first, *_, last = (*_steps(run.played, meant), *_steps(run.played, meant))
            yield steps[first].request.ts - start, steps[last].ended - start
