"""What the answers of a test's run cost, or would have cost."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from rewind.conversation.outline import outline_of
from rewind.model.step import Reading, Step, StepKind
from rewind.pricing.prices import Prices, load_prices
from rewind.pricing.spending import Spending, spending
from rewind.pytest_plugin.cassette_update import Reel
from rewind.pytest_plugin.observed import cost_as_if_live
from rewind.settings import Settings, read_settings


@cache
def settings_at(folder: Path) -> Settings:
    """The project's settings, read once in a run of pytest. Raises UsageError."""
    return read_settings(cwd=folder)


@cache
def prices_at(folder: Path) -> Prices:
    settings = settings_at(folder)
    return load_prices(settings.prices, newer=settings.home / "prices.jsonl")


def cost_of_steps(reel: Reel, steps: Iterable[Step], folder: Path) -> Spending:
    """Of these steps of the reel, once for each time they are named; an answer from a tape as if it were live."""
    calls = [step for step in steps if step.request.kind is StepKind.LLM_CALL and step.response is not None]
    if not calls:
        return Spending()
    readings = _readings(reel, calls)
    prices = prices_at(folder)
    told = ((step, readings[step.index]) for step in calls)
    return spending((step, reading, cost_as_if_live(prices, step, reading)) for step, reading in told)


def _readings(reel: Reel, calls: list[Step]) -> dict[int, Reading]:
    """As they were read when they were recorded; where that tells no tokens, by today's codecs."""
    kept = {step.index: step.response.reading for step in calls if step.response is not None}
    if all(reading.usage.is_told for reading in kept.values()):
        return kept
    part = tuple(step for step in reel.recording.steps if step.index in kept)

    def bodies(step: Step) -> tuple[bytes, bytes]:
        return reel.blob(step.request.body), reel.blob(
            step.response.body
        ) if step.response is not None else b""

    outline = outline_of(replace(reel.recording, steps=part), bodies)
    return {one.step.index: one.reading for one in outline.steps}
