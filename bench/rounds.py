"""Run the measures in turns, so that a busy minute of the machine hits every contender alike."""

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from bench.contenders import Contender, NotOffered
from bench.measures import Measure

Results = dict[str, dict[str, list[float]]]
"""Figure → contender → what each round gave."""


def run(contenders: Sequence[Contender], once: Sequence[Measure], repeated: Sequence[Measure], rounds: int) -> Results:
    """Every measure with every contender, neighbours in time; another one begins in each round."""
    results: Results = defaultdict(lambda: defaultdict(list))
    for contender in contenders:
        _say(f"preparing {contender.name}")
        contender.prepare()
    for measure in once:
        _take(measure, contenders, results)
    for number in range(rounds):
        _say(f"round {number + 1} of {rounds}")
        turn = number % len(contenders)
        for measure in repeated:
            _take(measure, [*contenders[turn:], *contenders[:turn]], results)
    return {figure: dict(values) for figure, values in results.items()}


def medians(results: Results) -> dict[str, dict[str, float]]:
    return {figure: {name: statistics.median(values) for name, values in of.items()} for figure, of in results.items()}


def _take(measure: Measure, contenders: Sequence[Contender], results: Results) -> None:
    for contender in contenders:
        try:
            figures = measure(contender)
        except NotOffered:
            continue
        for figure, value in figures.items():
            results[figure][contender.name].append(value)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
