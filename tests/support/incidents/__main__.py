"""``python -m support.incidents``: the table, what fails, and the screen of one case."""

import argparse
import sys

from support.incidents.case import RunPair, incident_pair, noise_pair
from support.incidents.catalogue import DEVELOPMENT, HELD_OUT, incident_pairs, names, noise_pairs
from support.incidents.score import IncidentVerdict, score_table, screen_of, verdict_of
from support.incidents.stage import LEVELS


def main() -> int:
    parser = argparse.ArgumentParser(prog="support.incidents", description=__doc__)
    parser.add_argument("--level", type=int, action="append", choices=LEVELS, help="a noise level; all unless told")
    parser.add_argument("--agent", action="append", help="an agent; all for development unless told")
    parser.add_argument("--noise", type=int, default=10, help="noise-only pairs of each agent and level")
    parser.add_argument("--world", type=int, default=0, help="the same incidents with other people, figures and words")
    parser.add_argument("--show", metavar="CASE", help="the screen of one case, such as support/late@2")
    parser.add_argument("--list", action="store_true", help="list good verdicts, too")
    parser.add_argument("--held-out", action="store_true", help="the agents that are held out, in totals only")
    parser.add_argument("--verbose", action="store_true", help="with --held-out: single cases, too")
    options = parser.parse_args()
    if options.show:
        return show(options.show)
    agents = [
        agent
        for agent in (HELD_OUT if options.held_out else DEVELOPMENT)
        if not options.agent or agent.name in options.agent
    ]
    levels = options.level or LEVELS
    pairs = [*incident_pairs(agents, levels, world=options.world), *noise_pairs(agents, levels, of_each=options.noise)]
    verdicts = [verdict_of(pair) for pair in pairs]
    if options.verbose or not options.held_out:
        show_cases(verdicts, good_ones=options.list)
    print(score_table(verdicts, names(agents), "held out" if options.held_out else "development"))
    return 0


def show_cases(verdicts: list[IncidentVerdict], *, good_ones: bool) -> None:
    """S, C, W: step, cause and words are right."""
    for verdict in verdicts:
        if good_ones or not verdict.is_good:
            print(verdict)
    print()


def show(name: str) -> int:
    pair = _pair(name)
    if pair is None:
        print(f"there is no case {name!r}; such names are listed without --show", file=sys.stderr)
        return 2
    print(verdict_of(pair))
    print()
    print(screen_of(pair))
    return 0


def _pair(name: str) -> RunPair | None:
    case, _, level = name.partition("@")
    agent_name, _, incident = case.partition("/")
    incident, _, number = incident.partition("#")
    for agent in (*DEVELOPMENT, *HELD_OUT):
        if agent.name != agent_name:
            continue
        if incident == "noise":
            return noise_pair(agent, int(level), int(number))
        for planted in agent.incidents:
            if planted.name == incident:
                return incident_pair(agent, planted, int(level), int(number or 0))
    return None


if __name__ == "__main__":
    sys.exit(main())
