"""What is said of an export: where it went, what was removed, and what looks like a secret still."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewind.cli.screens.fork import step_spans
from rewind.cli.screens.terminal import Span, Terminal
from rewind.redaction.scan import Finding
from rewind.text import plural

if TYPE_CHECKING:
    from rewind.reading.export import Package

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was given to ``rewind export``, so that the next command can be said whole."""

    session: str
    output: str | None = None
    redact: tuple[str, ...] = ()
    steps: tuple[int | None, int | None] | None = None
    flags: tuple[str, ...] = ()
    strict: bool = False
    force: bool = False
    home: str | None = None

    def with_patterns(self, patterns: Sequence[str], *, force: bool) -> str:
        """The same command with these patterns besides."""
        words = ["rewind", "export", self.session, *self._range()]
        words += ["-o", self.output] if self.output is not None else []
        words += self.flags
        words += ["--strict-secrets"] if self.strict else []
        words += ["--home", self.home] if self.home is not None else []
        words += [word for pattern in self.redact for word in ("--redact", pattern)]
        words += [word for pattern in patterns for word in ("--redact", pattern)]
        return shlex.join([*words, *(["--force"] if force or self.force else [])])

    def how_to_export(self, package: "Package") -> str:
        """The command for a report that others read: it names neither a path of this machine nor a pattern."""
        source = package.source
        known = source.id if source.file is None else "FILE"
        return " ".join(["rewind export", known, *self._range(), *("--redact PATTERN" for _ in self.redact)])

    def _range(self) -> list[str]:
        if self.steps is None:
            return []
        first, last = self.steps
        if first is not None and first == last:
            return ["--steps", str(first)]
        return ["--steps", f"{'' if first is None else first}..{'' if last is None else last}"]


def without_form(package: "Package", form: str) -> list[int]:
    """The steps that this form has no room for."""
    if form != "har":
        return []
    from rewind.formats.har_write import went_over_http  # lazily: few exports are archives

    return [step.index for step in package.recording.steps if not went_over_http(step)]


def print_exported(
    terminal: Terminal, package: "Package", file: str, data: bytes, form: str, asked: Asked
) -> None:
    """The last lines of ``rewind export``."""
    session, missing = package.session, without_form(package, form)
    total = len(package.recording.steps) + package.left_out
    written = len(package.recording.steps) - len(missing)
    steps = plural(written, "step") + (f" of {total}" if written < total else "")
    terminal.line("Exported ", Span(session.id, "bold"), f" to {file}  ({steps}, {_size(len(data))})")
    if session.id != package.source.id:
        terminal.line(f"  it is no longer all of {package.source.id}, so it has an id of its own")
    if package.left_out:
        terminal.line("  what the agent printed is left out: it tells of the other steps")
    if missing:
        terminal.line(
            f"  {_steps(missing)} did not go over HTTP (tools, notes and traces do not), so an archive has no place "
            "for them"
        )
    for one in package.recording.damage:
        terminal.line(Span(f"  damaged: {one}", "yellow"))
    print_report(terminal, package, asked, file)
    if form == "cassette" and file != "stdout":
        name = shlex.quote(file)
        first = "inspect {}" if package.recording.is_from_trace else "replay {} -- COMMAND"
        terminal.line(Span(f"→ rewind {first.format(name)} · rewind import {name}", "dim"))


def print_refused(terminal: Terminal, package: "Package", asked: Asked) -> None:
    """Nothing was written, and why."""
    terminal.line(
        Span("Nothing was written", "bold red"),
        f": {package.source.id} may hold secrets, and --strict-secrets was given.",
    )
    print_report(terminal, package, asked, None)


def print_report(terminal: Terminal, package: "Package", asked: Asked, file: str | None) -> None:
    """What was removed, and what was found; ``file`` is what was written, if anything was."""
    end, removed = package.source.end, package.removed
    recorded = end.redactions if end is not None else 0
    terminal.line(f"  {plural(recorded, 'secret')} removed while recording")
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
                f"  step {step}: not all of it could be read ({', '.join(why)}); the rest is left out, as nobody can "
                "look through it",
                "yellow",
            )
        )
    replayable = not package.recording.is_from_trace
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
            f"  in a replay the agent is given placeholders at {_steps(removed.answers)}: where it acts on what was "
            "removed, it may go another way"
        )
    print_findings(terminal, package.findings, asked, file)


def print_findings(terminal: Terminal, findings: Sequence[Finding], asked: Asked, file: str | None) -> None:
    """Where something stands that looks like a secret; never the secret."""
    if not findings:
        terminal.line("  nothing else looks like a secret")
        return
    terminal.line(Span(f"  {plural(len(findings), 'value')} may be a secret:", "bold yellow"))
    for one in findings[:_SHOWN]:
        place = " ".join(part for part in (one.where, one.path) if part)
        step = "" if one.step is None else f"step {one.step}, "
        more = f", {one.places} times" if one.places > 1 else ""
        terminal.line(f"    {step}{place}: ", Span(one.kind, "yellow"), f" {one.excerpt}{more}")
    if len(findings) > _SHOWN:
        terminal.line(f"    … and {len(findings) - _SHOWN} more; --json has all")
    if file is not None:
        terminal.line(Span(f"  {file} was written, and holds them", "yellow"))
    expressions = dict.fromkeys(getattr(one, "expression", "") for one in findings)
    known = [one for one in expressions if one][:3]
    force = file is not None and file != "stdout"
    terminal.line(
        Span(f"  → to take them out: {asked.with_patterns(known or ['PATTERN'], force=force)}", "dim")
    )


def _steps(indexes: Sequence[int]) -> str:
    return f"step{'s' * (len(indexes) > 1)} {step_spans(indexes)}"


def _size(count: int) -> str:
    for size, unit in ((1_000_000, "MB"), (1_000, "KB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return plural(count, "byte")
