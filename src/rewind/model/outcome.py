"""How a run came out, in one word."""

from enum import StrEnum

from rewind.model.session import Session, Status


class Outcome(StrEnum):
    """The status of a session, with what its exit code says."""

    OK = "ok"
    FAILED = "failed"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    BROKEN = "broken"
    PROBE = "probe"
    """It had one step to ask, and was ended: its exit code says nothing."""


def outcome_of(session: Session) -> Outcome:
    match session.status:
        case Status.ENDED if session.is_probe:
            return Outcome.PROBE
        case Status.ENDED:
            good = session.end is not None and session.end.exit_code == 0
            return Outcome.OK if good else Outcome.FAILED
        case Status.RUNNING:
            return Outcome.RUNNING
        case Status.INTERRUPTED:
            return Outcome.INTERRUPTED
        case Status.BROKEN:
            return Outcome.BROKEN
