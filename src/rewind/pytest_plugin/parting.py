"""Where a failing run left the cassette, and why."""

from rewind.compare.divergence import bisect
from rewind.compare.phrases import cause_place, cause_title, step_label
from rewind.compare.run import Run
from rewind.model.step import Step
from rewind.pytest_plugin.cassette_update import Reel
from rewind.safe import safe


def parting(good: Reel, bad: Reel) -> str:
    """Where the failing run left the cassette, and why, in a line or two; empty where it did not."""
    if not good.recording.steps or not bad.recording.steps:
        return ""
    found = bisect(_run(good), _run(bad))
    if found.at is None:
        return ""
    lines = [f"first divergence: step {step_label(found.at)}"]
    for cause in found.causes[:1]:
        place = cause_place(found, cause, brief=True)
        lines.append(f"cause: {cause_title(cause)}" + (f", {place}" if place else ""))
    return safe("\n".join(lines))


def _run(reel: Reel) -> Run:
    def answer(step: Step) -> bytes:
        return b"" if step.response is None else reel.blob(step.response.body)

    return Run(reel.recording, lambda step: (reel.blob(step.request.body), answer(step)), answer_body=answer)
