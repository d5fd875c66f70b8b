"""Where one run left another, in a line or two: what a failing test says about its cassette."""

from rewind.compare.divergence import bisect
from rewind.compare.phrases import cause_place, cause_title, step_label
from rewind.compare.run import ComparedRun
from rewind.reading.cassettes import RecordedRun
from rewind.safe import safe


def divergence_text(good: RecordedRun, bad: RecordedRun) -> str:
    """The first step where the bad run left the good one, and why; empty where it did not."""
    if not good.recording.steps or not bad.recording.steps:
        return ""
    finding = bisect(*(ComparedRun(run.recording, run.bodies, answer_body=run.answer) for run in (good, bad)))
    if finding.at is None:
        return ""
    lines = [f"first divergence: step {step_label(finding.at)}"]
    for cause in finding.causes[:1]:
        place = cause_place(finding, cause, brief=True)
        lines.append(f"cause: {cause_title(cause)}" + (f", {place}" if place else ""))
    return safe("\n".join(lines))
