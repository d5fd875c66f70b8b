"""The report of ``rewind export --markdown``: the run understood and priced, and the text made safe to show."""

from typing import TYPE_CHECKING

from rewind.cli.progress import progress
from rewind.conversation.outline import outline_of
from rewind.model.step import StepKind
from rewind.pricing.spending import Pricing, cost_of, spending
from rewind.safe import safe
from rewind.text import dollars
from rewind.views.report import Report, report

if TYPE_CHECKING:
    from rewind.reading.export import Package


TAIL = 8_000
"""Bytes of what was printed that are told: how it ended is at the end."""


def report_of(package: "Package", prices: Pricing, exporting: str) -> str:
    """The whole report; ``exporting`` is the command that writes a cassette of the same."""
    recording = package.recording
    with progress("steps read") as show:
        outline = outline_of(
            recording,
            lambda step: step.bodies(package.blob),
            lambda done: show(done, len(recording.steps)),
        )
    calls = [one for one in outline.steps if one.kind is StepKind.LLM_CALL]
    costs = {one.step.index: cost_of(prices, one.step, one.reading) for one in calls}
    spent = spending((one.step, one.reading, costs[one.step.index]) for one in calls)
    end = package.session.end
    streams = () if end is None else (("stderr", end.stderr), ("stdout", end.stdout))
    printed = [(name, _tail(package.blob(blob))) for name, blob in streams if blob is not None]
    return safe(
        report(
            Report(
                recording=recording,
                outline=outline,
                cost=dollars(spent.usd, spent.unpriced),
                costs={index: dollars(cost) for index, cost in costs.items()},
                redactions=end.redactions if end is not None else 0,
                printed=[(name, text) for name, text in printed if text.strip()],
                removed=package.removed,
                findings=package.findings,
                left_out=package.left_out,
                exporting=exporting,
                replayable=not recording.is_from_trace,
            )
        )
    )


def _tail(data: bytes) -> str:
    cut = "…" if len(data) > TAIL else ""
    return cut + data[-TAIL:].decode("utf-8", "replace")
