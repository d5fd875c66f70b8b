"""What was written to a file, what was taken out of it before, and what was taken in from one → plain JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rewind.redaction.scan import Finding

if TYPE_CHECKING:
    from rewind.reading.import_ import Imported
    from rewind.reading.removal import Removed


def exported(
    *,
    file: str | None,
    form: str,
    session: str,
    source: str,
    steps: int,
    left_out: int,
    without_form: Sequence[int],
    size: int | None,
    sha256: str | None,
    recorded: int,
    removed: "Removed",
    findings: Sequence[Finding],
) -> dict[str, Any]:
    """A file; or, where ``file`` is ``None``, why none was written: the findings.

    ``without_form`` are steps that the form has no room for: in a HAR, what did not go over HTTP.
    """
    return {
        "schema": "rewind/export@1",
        "file": file,
        "format": form,
        "id": session,
        "source": source,
        "steps": steps,
        "left_out": left_out,
        "without_form": list(without_form),
        "bytes": size,
        "sha256": sha256,
        "redactions": {
            "while_recording": recorded,
            "removed": removed.count,
            "by_step": [{"step": step, "count": count} for step, count in sorted(removed.steps.items())],
            "elsewhere": removed.elsewhere,
            "will_miss": list(removed.misses),
            "answers_changed": list(removed.answers),
            "unread": [{"step": step, "why": list(why)} for step, why in sorted(removed.unread.items())],
            "unmatched": list(removed.idle),
        },
        "findings": [finding(one) for one in findings],
    }


def finding(one: Finding) -> dict[str, Any]:
    return {
        "step": one.step,
        "where": one.where,
        "path": one.path,
        "kind": one.kind,
        "excerpt": one.excerpt,
        "places": one.places,
    }


def imported(rows: Sequence[tuple[str, "Imported | str"]]) -> dict[str, Any]:
    """What came of each file, or why nothing did."""
    return {"schema": "rewind/import@1", "files": [_file(path, one) for path, one in rows]}


def _file(path: str, one: "Imported | str") -> dict[str, Any]:
    if isinstance(one, str):
        return {"file": path, "id": None, "error": one}
    return {
        "file": path,
        "id": one.session_id,
        "steps": one.steps,
        "tool": one.tool,
        "new": one.new,
        "remarks": list(one.remarks),
        "error": None,
    }
