"""What came of putting things back → plain JSON."""

from typing import TYPE_CHECKING, Any

from rewind.compare.minimise import Hunk
from rewind.compare.phrases import slug

if TYPE_CHECKING:
    from rewind.runs.probe import Proof, Smallest, Trial


def proof(one: "Proof") -> dict[str, Any]:
    """What ``rewind bisect --prove`` adds."""
    return {
        "proven": [_trial(trial) for trial in one.proven],
        "control": _trial(one.control),
        "trials": [_trial(trial) for trial in one.trials],
        "smallest": None if one.smallest is None else _smallest(one.smallest),
        "live_calls": one.live_calls,
        "cost_usd": one.spent.usd,
        "unpriced": one.spent.unpriced,
        "stopped": one.stopped,
    }


def _trial(trial: "Trial") -> dict[str, Any]:
    return {
        "put_back": trial.what,
        "cause": None if trial.kind is None else slug(trial.kind),
        "edits": [edit.written for edit in trial.edits],
        "outcomes": [outcome.value for outcome in trial.outcomes],
        "like_good": trial.like_good,
        "sessions": list(trial.sessions),
        "refused": trial.refused,
    }


def _smallest(least: "Smallest") -> dict[str, Any]:
    return {
        "sentences": [_hunk(hunk) for hunk in least.sentences],
        "words": [_hunk(hunk) for hunk in least.words],
        "of": least.of,
        "complete": least.complete,
    }


def _hunk(hunk: Hunk) -> dict[str, str]:
    return {"good": hunk.good, "bad": hunk.bad}
