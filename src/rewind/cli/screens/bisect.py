"""Where runs part and why, for people: the screens of ``rewind bisect``."""

from collections.abc import Iterator, Sequence

from rewind.cli.screens.diff import print_sides
from rewind.cli.screens.difference import cause_blocks, print_causes
from rewind.cli.screens.layout import Line, print_hanging, room
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.compare.align import Row
from rewind.compare.decision import ChangeKind, Weight
from rewind.compare.divergence import Finding, Parting, PartingWeight
from rewind.compare.phrases import MoveResult, folded_text, move_result, ruled_out_text, step_label
from rewind.model.session import Surroundings
from rewind.reading.bisect import CodeComparison, NextCommand, PairBisection
from rewind.safe import display_width, safe_line
from rewind.text import minute, plural

_FIRST, _LAST = 2, 3
"""Steps that match and are shown: at the beginning, and before the runs part."""
_FACTS = 11
"""Columns of the labels."""
_MOST_SAID = 320
"""Characters of an answer."""
_SHARED = 60
"""Characters that both answers begin with and that are shown."""
_LONGEST_FACT = 60
_LONGEST_CODE_FACT = 50
_MOST_VERSIONS = 4
_MOST_CHANGES = 3
_SEEN = (ChangeKind.WORDS, ChangeKind.TOOL, ChangeKind.STATUS)
_MATCHES = {
    Weight.SAME: Span("match ✓", "green"),
    Weight.PROSE: Span("match ≈", "yellow"),
    Weight.DECISIVE: Span("other ≠", "yellow"),
}


def print_pair(terminal: Terminal, found: PairBisection) -> None:
    """The screen of one good run and one bad run."""
    finding = found.finding
    sign, *headline = _headline(finding)
    print_hanging(terminal, [tuple(headline)], label=sign.text, indent=2, style=sign.style)
    terminal.line()
    print_sides(terminal, [("good", found.good.session), ("bad", found.bad.session)])
    terminal.line()
    _print_steps(terminal, finding)
    terminal.line()
    if finding.at is not None:
        print_causes(terminal, list(cause_blocks(finding)), ("Cause", "Causes"), _FACTS)
    ruled_out = " · ".join(safe_line(ruled_out_text(fact), _LONGEST_FACT) for fact in finding.ruled_out)
    facts = {
        "Since": _since(found),
        "Ruled out": ruled_out,
        "History": _history(found),
        "Code": " · ".join(safe_line(fact, _LONGEST_CODE_FACT) for fact in _code(found.code)),
        "Matched": _matched(finding),
    }
    for label, text in facts.items():
        if text:
            print_hanging(terminal, [(Span(text),)], label=label, indent=_FACTS)
    for aside in _asides(finding):
        print_hanging(terminal, [(Span(aside, "dim"),)], indent=_FACTS)


def print_next(terminal: Terminal, commands: Sequence[NextCommand]) -> None:
    """What to do about it, a line for each command."""
    width = max((len(command.purpose) for command in commands), default=0) + 1
    for command in commands:
        terminal.line(hint(f"→ {command.purpose + ':':<{width}}  {command.command}"))


# ── the headline ─────────────────────────────────────────────────────────────────────────────────────────────


def _headline(finding: Finding) -> Line:
    at = finding.at
    if at is None:
        steps = f"{finding.matched:,} of {plural(finding.total, 'step')} match"
        if any(one.weight is not PartingWeight.RETRIED for one in finding.partings):
            return Span("≈ ", "bold green"), Span(f"The runs go the same way in other words: {steps}", "bold")
        return Span("✓ ", "bold green"), Span(f"No divergence: {steps}", "bold")
    about = Span(f" ({_about(at)})", "dim")
    if finding.answers_part:
        return Span("✗ ", "bold red"), Span(f"First divergence at {_where(at)}", "bold"), about
    if finding.comparison.relation(at).reworded:
        said = f"The runs go the same way in other words, first at {_where(at)}"
        return Span("≈ ", "bold yellow"), Span(said, "bold"), about
    same = "comes to the same" if finding.partings else "is the same"
    said = f"Every answer {same}, but what is asked differs, first at {_where(at)}"
    return Span("≠ ", "bold yellow"), Span(said, "bold"), about


def _where(row: Row) -> str:
    a, b = row.indexes
    if b is None:
        return f"step {a} of the good run"
    if a is None:
        return f"step {b} of the bad run"
    return f"step {a}" if a == b else f"step {a} of the good run, {b} of the bad one"


def _about(row: Row) -> str:
    """``llm_call · claude-sonnet-4-6 · anthropic``."""
    models = dict.fromkeys(move.model_asked for move in row.moves if move.model_asked)
    providers = dict.fromkeys(move.step.request.provider for move in row.moves)
    kinds = dict.fromkeys(move.kind.value for move in row.moves)
    return " · ".join(safe_line(" → ".join(words), 80) for words in (kinds, models, providers) if words)


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────


def _print_steps(terminal: Terminal, finding: Finding) -> None:
    before = finding.before
    hidden = max(0, len(before) - _FIRST - _LAST)
    if hidden == 1:
        hidden = 0
    shown = [*before[:_FIRST], *before[_FIRST + hidden :]] if hidden else list(before)
    rows = shown if finding.at is None else [*shown, finding.at]
    labels = max((len(step_label(row)) for row in rows), default=0) + len("  Step ")
    for at, row in enumerate(shown):
        if hidden and at == _FIRST:
            terminal.line(Span(f"{'  …':<{labels}}   {plural(hidden, 'step')} match", "dim"))
        _print_match(terminal, finding, row, labels)
    if finding.at is not None:
        _print_parting(terminal, finding, finding.at, labels)


def _print_match(terminal: Terminal, finding: Finding, row: Row, labels: int) -> None:
    verdict = _MATCHES[finding.comparison.decided(row).weight]
    assert row.b is not None, "what matches has two moves"
    label = f"  Step {step_label(row)}".ljust(labels)
    left = room(terminal, labels + len(verdict.text) + 6)
    said = _in_a_line(move_result(finding.comparison.b, row.b), left)
    terminal.line(label, "   ", verdict, "   ", Span(said, "dim"))


def _print_parting(terminal: Terminal, finding: Finding, row: Row, labels: int) -> None:
    verdict = Span("DIVERGED ✗", "bold red")
    if not finding.answers_part:
        reworded = finding.comparison.relation(row).reworded
        verdict = Span("REWORDED ≈", "bold yellow") if reworded else Span("ASKED OTHERWISE ≠", "bold yellow")
    terminal.line(Span(f"  Step {step_label(row)}".ljust(labels), "bold"), "   ", verdict)
    good = None if row.a is None else move_result(finding.comparison.a, row.a)
    bad = None if row.b is None else move_result(finding.comparison.b, row.b)
    if good == bad:
        _print_said(terminal, "Both", good, 0)
        return
    shared = _shared_letters(good.words, bad.words) if good is not None and bad is not None else 0
    _print_said(terminal, "Good", good, shared)
    _print_said(terminal, "Bad", bad, shared)
    if (parting := finding.parting) is not None and (changes := _changes(parting)):
        print_hanging(terminal, [(Span(changes, "bold"),)], label="    Differs in:", indent=16)


def _changes(parting: Parting) -> str:
    """``28 → 24 days``; words and tools can be seen in the answers themselves."""
    told = [str(one) for one in parting.changes if one.weight is Weight.DECISIVE and one.kind not in _SEEN]
    more = f" and {len(told) - _MOST_CHANGES} more" if len(told) > _MOST_CHANGES else ""
    return " · ".join(safe_line(one, _LONGEST_FACT) for one in told[:_MOST_CHANGES]) + more


def _shared_letters(good: str, bad: str) -> int:
    """How many letters both begin with."""
    pairs = enumerate(zip(good, bad, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(good), len(bad)))


def _print_said(terminal: Terminal, who: str, said: MoveResult | None, shared: int) -> None:
    indent = 11
    spans: list[Span] = []
    if said is not None:
        spans += [Span(said.failure, "red")] if said.failure else []
        spans += [Span(_cut(said.exchange, 0))] if said.exchange else []
        spans += [Span(f'"{_cut(said.words, shared)}"')] if said.words else []
        spans += [Span(f"→ {_cut(call, 0)}", "cyan") for call in said.calls]
    if not spans:
        spans = [Span("(no such step)" if said is None else str(said), "dim")]
    in_one = sum(display_width(span.text) + 1 for span in spans) <= room(terminal, indent)
    line = tuple(part for span in spans for part in (Span(" "), span))[1:]
    lines: list[Line] = [line] if in_one else [(span,) for span in spans]
    print_hanging(terminal, lines, label=f"    {who}:", indent=indent)


def _in_a_line(said: MoveResult, width: int) -> str:
    """With the names of the tools, however long the words and the arguments are."""
    whole = safe_line(str(said), width + 1)
    names = [call.partition("(")[0] + "(…)" for call in said.calls]
    asks = " → " + ", ".join(names)
    left = width - display_width(asks) - 2
    if display_width(whole) <= width or not names or not said.words or left < width // 3:
        return safe_line(str(said), width)
    return f'"{safe_line(said.words, left)}"{asks}'


def _cut(text: str, shared: int) -> str:
    """From shortly before the answers part; not more than is read at a glance."""
    start = 0
    if shared > 2 * _SHARED:
        start = shared - _SHARED
        start += text[start:shared].find(" ") + 1
    text = ("… " if start else "") + text[start:]
    return safe_line(text, _MOST_SAID) if display_width(text) > _MOST_SAID else text


# ── what else there is to say ────────────────────────────────────────────────────────────────────────────────


def _matched(finding: Finding) -> str:
    steps = f"{finding.matched:,} of {plural(finding.total, 'step')}"
    if finding.at is None:
        return steps
    again = "none" if finding.resync is None else f"step {step_label(finding.resync)}"
    return f"{steps} · re-sync: {again}"


def _asides(finding: Finding) -> Iterator[str]:
    """What differs and is no parting."""
    if folded := folded_text(finding):
        yield folded
    relations = [finding.comparison.relation(row) for row in finding.before]
    if volatile := sum(relation.alike and bool(relation.noise) for relation in relations):
        yield f"{plural(volatile, 'step')} {'differs' if volatile == 1 else 'differ'} only in ids and times"
    for name, rows in (
        ("good", [row for row in finding.beside if row.b is None]),
        ("bad", [row for row in finding.beside if row.a is None]),
    ):
        if rows:
            calls = "a parallel call" if len(rows) == 1 else "parallel calls"
            yield f"only in {name}: {_steps(rows)}, {calls} that nothing depends on"


def _steps(rows: Sequence[Row]) -> str:
    indexes = [str(index) for row in rows for index in row.indexes if index is not None]
    more = f" and {len(indexes) - 8} more" if len(indexes) > 8 else ""
    return ("step " if len(indexes) == 1 else "steps ") + ", ".join(indexes[:8]) + more


# ── since when, and on what code ────────────────────────────────────────────────────────────────────────────────────


def _since(found: PairBisection) -> str:
    """``first seen 2026-11-15 09:14 UTC in 9b2c0d1e; last with the old one: 7f3a2b9c, 09:02 UTC``."""
    seen = found.since.get(0)
    if seen is None:
        return ""
    first = minute(seen.ts)
    facts = [f"first seen {first} in {_named(seen.session.id, found)}"]
    if seen.last_without is not None:
        last = minute(seen.last_without.ts)
        shown = last[11:] if last[:10] == first[:10] else last
        facts.append(f"last with the old one: {_named(seen.last_without.session.id, found)}, {shown}")
    if seen.after:
        facts.append(f"{plural(seen.after, 'session')} later still had the old one")
    if seen.unread:
        facts.append(f"{plural(seen.unread, 'earlier session')} cannot tell")
    return "; ".join(facts)


def _history(found: PairBisection) -> str:
    """What earlier good runs were asked for, and how much of it helped."""
    if found.history is None:
        return ""
    runs, demoted = len(found.history.sessions), sum(one.demoted for one in found.history.learnt)
    varies = f"{plural(demoted, 'difference')} above also vary there" if demoted else "no difference above varies there"
    if demoted == 1:
        varies = "one difference above also varies there"
    return f"{runs} earlier good runs of this program: {varies}"


def _named(session: str, found: PairBisection) -> str:
    good, bad = found.good.id, found.bad.id
    if session in (good, bad) and good != bad:
        return f"{session} (the {'good' if session == good else 'bad'} run)"
    return session


def _code(code: CodeComparison) -> Iterator[str]:
    """Commits, packages and lock files of both runs, as far as they are known."""
    if text := _commits(code):
        yield f"git {text}"
    yield from (f"{change.name} {change.before} → {change.after}" for change in code.changed_versions)
    same = [
        f"{name} {version}" for name, version in code.good_versions.items() if code.bad_versions.get(name) == version
    ]
    if same:
        more = f" and {len(same) - _MOST_VERSIONS} more" if len(same) > _MOST_VERSIONS else ""
        yield ", ".join(same[:_MOST_VERSIONS]) + more + " in both"
    yield from (f"{name} changed" for name in code.changed_locks)


def _commits(code: CodeComparison) -> str:
    if not any(side is not None and side.commit is not None for side in (code.good, code.bad)):
        return ""
    before, after = _commit(code.good), _commit(code.bad)
    match code.same:
        case True:
            return f"{before} in both"
        case None if before == after:
            return f"{before} in both, not known whether it is the same"
        case False if before == after:
            return f"{before} in both, but not the same changes"
    return f"{before} → {after}"


def _commit(found: Surroundings | None) -> str:
    if found is None or found.commit is None:
        return "not known"
    return found.commit[:7] + (" + uncommitted changes" if found.dirty else "")
