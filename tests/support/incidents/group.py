"""Several good runs and several bad ones, of which no two say the same words."""

from dataclasses import dataclass
from random import Random

from support.incidents.case import Words, parting_steps, run_agent
from support.incidents.catalogue import DEVELOPMENT
from support.planted_recording import Played


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTruth:
    """What tells the bad runs from the good ones."""

    incident: str
    kind: str
    causes: frozenset[str]
    words: Words
    good_steps: tuple[frozenset[int], ...]
    """Of every good run the steps at which the bad ones went another way; any of them is right."""
    bad_steps: tuple[frozenset[int], ...]
    """Empty for bad runs that do not have the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCase:
    """``truth`` is ``None`` where all runs went the same way."""

    name: str
    goods: tuple[Played, ...]
    bads: tuple[Played, ...]
    truth: GroupTruth | None


def group_case(
    seed: int, level: int, *, goods: int = 10, bads: int = 10, share: float = 1.0, planted: bool = True
) -> GroupCase:
    """A case of the agents for development. ``share`` of the bad runs have the cause; the others went as good ones
    do and are called bad all the same."""
    random = Random(f"group:{seed}")
    agent = DEVELOPMENT[seed % len(DEVELOPMENT)]
    chosen = agent.incidents[(seed // len(DEVELOPMENT)) % len(agent.incidents)]
    name = f"{agent.name}/{chosen.name if planted else 'noise'}@{level} group {seed}"
    setup = agent.setup(random)
    setup = chosen.prepare(setup) if planted else setup
    changed = chosen.change(setup, random) if planted else setup
    having = round(bads * share) if planted else 0
    good_runs = [run_agent(agent, setup, seed=name, tag=f"good {at}", level=level) for at in range(goods)]
    bad_runs = [
        run_agent(agent, changed if at < having else setup, seed=name, tag=f"bad {at}", level=level)
        for at in range(bads)
    ]
    truth = None
    if planted:
        truth = GroupTruth(
            incident=chosen.name,
            kind=chosen.kind,
            causes=chosen.causes,
            words=chosen.words(setup, changed),
            good_steps=tuple(parting_steps(run, bad_runs[0])[0] for run in good_runs),
            bad_steps=tuple(parting_steps(good_runs[0], run)[1] for run in bad_runs),
        )
    return GroupCase(
        name=name, goods=tuple(run.played for run in good_runs), bads=tuple(run.played for run in bad_runs), truth=truth
    )
