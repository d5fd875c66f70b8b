"""What is said of an export and an import: where it went, what was removed, what looks like a secret still."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.safe import safe_line
from rewind.text import plural, size, spans

if TYPE_CHECKING:
    from rewind.reading.export import Exported, ExportOptions
    from rewind.reading.import_ import Imported

_SHOWN = 20


class ExportCommand(NamedTuple):
    """What was given to ``rewind export``, so that the next command can be said whole."""

    session: str
    options: "ExportOptions"
    flags: tuple[str, ...] = ()

    def with_patterns(self, patterns: Sequence[str], *, force: bool) -> str:
        """The same command with these patterns besides."""
        options = self.options
        words = ["rewind", "export", self.session]
        words += ["--steps", options.steps.written] if options.steps is not None else []
        words += ["-o", options.output] if options.output is not None else []
        words += self.flags
        words += ["--strict-secrets"] if options.strict else []
        words += [word for pattern in (*options.redact, *patterns) for word in ("--redact", pattern)]
        return shlex.join([*words, *(["--force"] if force or options.force else [])])


def print_exported(terminal: Terminal, exported: "Exported", command: ExportCommand) -> None:
    """The last lines of ``rewind export``: what was written; or that nothing was, and why."""
    if exported.written is None:
        terminal.line(
            Span("Nothing was written", "bold red"),
            f": {exported.source.id} may hold secrets, and --strict-secrets was given.",
        )
        _print_secrets(terminal, exported, command)
        return
    session, missing = exported.session, exported.without_form
    file = _shown(exported)
    total = len(exported.recording.steps) + exported.left_out
    written = total - exported.left_out - len(missing)
    steps = plural(written, "step") + (f" of {total}" if written < total else "")
    terminal.line("Exported ", Span(session.id, "bold"), f" to {file}  ({steps}, {size(exported.written.size)})")
    if session.id != exported.source.id:
        terminal.line(f"  it differs from {exported.source.id}, so it has its own id")
    if exported.left_out:
        terminal.line("  what the agent printed is left out, since it may show the other steps")
    if missing:
        terminal.line(
            f"  {_steps(missing)} did not go over HTTP (tools, notes and traces do not), so the archive does not "
            "hold them"
        )
    for damage in exported.recording.damage:
        terminal.line(Span(f"  damaged: {damage}", "yellow"))
    _print_secrets(terminal, exported, command)
    if exported.form == "cassette" and exported.file is not None:
        name = shlex.quote(file)
        first = f"inspect {name}" if exported.recording.is_from_trace else f"replay {name} -- COMMAND"
        terminal.line(hint(f"→ rewind {first} · rewind import {name}"))


def print_imported(
    terminal: Terminal, talk: Terminal, rows: Sequence[tuple[str, "Imported | str"]], *, name: str | None, quiet: bool
) -> None:
    """The lines of ``rewind import``, one for each file that was taken in; ``quiet`` only what may surprise."""
    taken = [(file, imported) for file, imported in rows if not isinstance(imported, str)]
    for file, imported in () if quiet else taken:
        state = Span("✓ imported ", "green") if imported.new else Span("= already there ", "dim")
        facts = f"  {plural(imported.steps, 'step')}  {imported.tool}  {safe_line(file, 120)}"
        terminal.line(state, Span(imported.session_id, "bold"), facts)
        for remark in imported.remarks:
            talk.line(Span(f"  {remark}", "yellow"))
    if taken and not quiet:
        last = taken[-1][1]
        again = f"replay {last.session_id} -- COMMAND" if last.replayable else f"messages {last.session_id}"
        talk.line(hint(f"→ rewind inspect {last.session_id} · rewind {again}"))
    for _, imported in taken:
        if name is not None and not imported.new and imported.name != name:
            known = f"under the name {imported.name!r}" if imported.name else "without a name"
            said = f"  it already exists {known}, so --name {shlex.quote(name)} was not used"
            talk.line(Span(said, "yellow"))


def print_folder_summary(talk: Terminal, rows: Sequence[tuple[str, "Imported | str"]], *, others: int) -> None:
    """The last line of the import of a folder: what became of its files."""
    taken = [imported for _, imported in rows if not isinstance(imported, str)]
    new = sum(imported.new for imported in taken)
    facts = [
        f"{new:,} imported",
        f"{len(taken) - new:,} already there",
        f"{len(rows) - len(taken):,} could not be read",
    ]
    facts += [f"{plural(others, 'other file')} passed over"] if others else []
    talk.line(f"{plural(len(rows), 'recording')}: {', '.join(facts)}")


def _shown(exported: "Exported") -> str:
    return "stdout" if exported.file is None else str(exported.file)


def _print_secrets(terminal: Terminal, exported: "Exported", command: ExportCommand) -> None:
    """What was removed, and what was found."""
    removed, replayable = exported.removed, not exported.recording.is_from_trace
    terminal.line(f"  {plural(exported.redactions, 'secret')} removed while recording")
    if removed.count:
        places = [f"{count} at step {step}" for step, count in sorted(removed.steps.items())[:_SHOWN]]
        places += ["…"] if len(removed.steps) > _SHOWN else []
        places += [f"{removed.elsewhere} elsewhere"] if removed.elsewhere else []
        terminal.line(f"  {removed.count:,} removed by --redact: {', '.join(places)}")
    for pattern in removed.idle:
        terminal.line(Span(f"  --redact {shlex.quote(pattern)} matched nothing", "bold yellow"))
    for step, why in sorted(removed.unread.items())[:_SHOWN]:
        terminal.line(
            Span(
                f"  step {step}: not all of it could be read ({', '.join(why)}); the rest is left out, since it "
                "cannot be searched",
                "yellow",
            )
        )
    if removed.misses and replayable:
        terminal.line(
            Span(
                f"  {_steps(removed.misses)} will miss in a replay: the agent itself sends what was removed; give "
                "replay the same --redact, or --allow-drift",
                "yellow",
            )
        )
    if removed.answers and replayable:
        terminal.line(
            f"  in a replay the agent gets placeholders at {_steps(removed.answers)}: if it acts on what was "
            "removed, it may take another path"
        )
    _print_findings(terminal, exported, command)


def _print_findings(terminal: Terminal, exported: "Exported", command: ExportCommand) -> None:
    """Where something stands that looks like a secret; never the secret."""
    findings = exported.findings
    if not findings:
        terminal.line("  nothing else looks like a secret")
        return
    terminal.line(Span(f"  {plural(len(findings), 'value')} may be a secret:", "bold yellow"))
    for finding in findings[:_SHOWN]:
        place = " ".join(part for part in (finding.where, finding.path) if part)
        step = "" if finding.step is None else f"step {finding.step}, "
        more = f", {finding.places} times" if finding.places > 1 else ""
        terminal.line(f"    {step}{place}: ", Span(finding.kind, "yellow"), f" {finding.excerpt}{more}")
    if len(findings) > _SHOWN:
        terminal.line(f"    … and {len(findings) - _SHOWN} more; --json has all")
    if exported.written is not None:
        terminal.line(Span(f"  {_shown(exported)} was written, and holds them", "yellow"))
    known = list(dict.fromkeys(finding.expression for finding in findings if finding.expression))[:3]
    again = command.with_patterns(known or ["PATTERN"], force=exported.file is not None)
    terminal.line(hint(f"  → to remove them: {again}"))


def _steps(indexes: Sequence[int]) -> str:
    return f"step{'s' * (len(indexes) > 1)} {spans(indexes)}"
