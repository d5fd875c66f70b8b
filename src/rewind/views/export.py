"""What was written to a file, what was taken out of it before, and what was taken in from one → plain JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rewind.redaction.scan import SecretFinding

if TYPE_CHECKING:
    from rewind.reading.export import Exported
    from rewind.reading.import_ import Imported


def exported(export: "Exported") -> dict[str, Any]:
    """A file; or, where ``file`` is ``None``, why none was written: the findings."""
    removed, written = export.removed, export.written
    return {
        "schema": "rewind/export@1",
        "file": None if export.file is None else str(export.file),
        "format": export.form.value,
        "id": export.session.id,
        "source": export.source.id,
        "steps": len(export.recording.steps),
        "left_out": export.left_out,
        "without_form": list(export.without_form),
        "bytes": None if written is None else written.size,
        "sha256": None if written is None else written.sha256,
        "redactions": {
            "while_recording": export.redactions,
            "removed": removed.count,
            "by_step": [{"step": step, "count": count} for step, count in sorted(removed.steps.items())],
            "elsewhere": removed.elsewhere,
            "will_miss": list(removed.misses),
            "answers_changed": list(removed.answers),
            "unread": [{"step": step, "why": list(why)} for step, why in sorted(removed.unread.items())],
            "unmatched": list(removed.idle),
        },
        "findings": [_finding(finding) for finding in export.findings],
        "damage": list(export.recording.damage),
    }


def _finding(finding: SecretFinding) -> dict[str, Any]:
    return {
        "step": finding.step,
        "where": finding.where,
        "path": finding.path,
        "kind": finding.kind,
        "excerpt": finding.excerpt,
        "places": finding.places,
    }


def imported(rows: Sequence[tuple[str, "Imported | str"]], *, others: int = 0) -> dict[str, Any]:
    """What came of each file, or why nothing did; ``others``: files of a folder that are not recordings."""
    files = [_file(path, imported) for path, imported in rows]
    return {"schema": "rewind/import@1", "files": files, "others": others}


def _file(path: str, imported: "Imported | str") -> dict[str, Any]:
    if isinstance(imported, str):
        return {"file": path, "id": None, "error": imported}
    return {
        "file": path,
        "id": imported.session_id,
        "steps": imported.steps,
        "tool": imported.tool,
        "new": imported.new,
        "remarks": list(imported.remarks),
        "error": None,
    }
