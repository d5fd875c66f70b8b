"""All scripted agents, and the pairs of runs that are made of them."""

from collections.abc import Iterator, Sequence

from support.incidents.case import RunPair, ScriptedAgent, incident_pair, noise_pair
from support.incidents.coding import AGENT as CODING
from support.incidents.held_out.handoff import AGENT as HANDOFF
from support.incidents.held_out.rag import AGENT as RAG
from support.incidents.refund_desk import AGENT as REFUND_DESK
from support.incidents.research import AGENT as RESEARCH

DEVELOPMENT: tuple[ScriptedAgent, ...] = (REFUND_DESK, CODING, RESEARCH)
"""Agents that bisect may be tuned by."""
HELD_OUT: tuple[ScriptedAgent, ...] = (RAG, HANDOFF)
"""Agents that nobody looks at while bisect is worked on."""


def names(agents: Sequence[ScriptedAgent]) -> list[str]:
    return [agent.name for agent in agents]


def incident_pairs(
    agents: Sequence[ScriptedAgent], levels: Sequence[int], *, every: int = 1, world: int = 0
) -> Iterator[RunPair]:
    """Every incident of these agents at these levels, or every so many of them, another one at each level.

    In another world people, products, figures and words are others.
    """
    for level in levels:
        number = level
        for agent in agents:
            for planted in agent.incidents:
                number += 1
                if number % every == 0:
                    yield incident_pair(agent, planted, level, world)


def noise_pairs(agents: Sequence[ScriptedAgent], levels: Sequence[int], *, of_each: int) -> Iterator[RunPair]:
    """So many pairs of every agent at each level."""
    for level in levels:
        for agent in agents:
            for number in range(of_each):
                yield noise_pair(agent, level, number)
