"""What came of putting things back → plain JSON."""

from collections.abc import Sequence
from typing import Any, Protocol

from rewind.compare.cause import CauseKind
from rewind.compare.minimise import Hunk
from rewind.compare.outcome import Outcome
from rewind.compare.phrases import slug
from rewind.edit.edits import Edit
from rewind.views.fork import Spent


class Trial(Protocol):
    """Something that was put back, and how the runs came out."""

    @property
    def what(self) -> str: ...
    @property
    def kind(self) -> CauseKind | None: ...
    @property
    def edits(self) -> Sequence[Edit]: ...
    @property
    def outcomes(self) -> Sequence[Outcome]: ...
    @property
    def sessions(self) -> Sequence[str]: ...
    @property
    def like_good(self) -> int: ...
    @property
    def refused(self) -> str | None: ...


class Smallest(Protocol):
    """The smallest change of a prompt that turns the outcome."""

    @property
    def sentences(self) -> Sequence[Hunk]: ...
    @property
    def words(self) -> Sequence[Hunk]: ...
    @property
    def of(self) -> int: ...
    @property
    def complete(self) -> bool: ...


class Proof(Protocol):
    """What the probes came to."""

    @property
    def control(self) -> Trial: ...
    @property
    def trials(self) -> Sequence[Trial]: ...
    @property
    def proven(self) -> Sequence[Trial]: ...
    @property
    def smallest(self) -> Smallest | None: ...
    @property
    def live_calls(self) -> int: ...
    @property
    def spent(self) -> Spent: ...
    @property
    def stopped(self) -> str | None: ...


def proof(one: Proof) -> dict[str, Any]:
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


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "put_back": trial.what,
        "cause": None if trial.kind is None else slug(trial.kind),
        "edits": [edit.written for edit in trial.edits],
        "outcomes": [outcome.value for outcome in trial.outcomes],
        "like_good": trial.like_good,
        "sessions": list(trial.sessions),
        "refused": trial.refused,
    }


def _smallest(least: Smallest) -> dict[str, Any]:
    return {
        "sentences": [_hunk(hunk) for hunk in least.sentences],
        "words": [_hunk(hunk) for hunk in least.words],
        "of": least.of,
        "complete": least.complete,
    }


def _hunk(hunk: Hunk) -> dict[str, str]:
    return {"good": hunk.good, "bad": hunk.bad}
