"""Several good runs and several bad ones: which runs those are, and what tells them apart.

A word names a run, or many: an id or a name; a pattern of names (``refund-*``); files (``runs/*.rw``); or a query, with
the words that ``rewind list`` has for options (``'name=refund* status=ok since=7d'``).
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rewind.compare.groups import GroupFinding, GroupVerdict, compare_groups
from rewind.compare.outcome_test import OutcomeFacts, holds_any, outcome_test
from rewind.compare.run import ComparedRun
from rewind.dataclass import dataclass
from rewind.errors import SessionNotFound, UsageError
from rewind.model.clock import SystemClock
from rewind.model.message import ToolUse
from rewind.model.outcome import Outcome, outcome_of
from rewind.model.session import Session, Status, split_step
from rewind.pricing.prices import Prices
from rewind.reading.compare import ComparedSession, opened_side_by_side
from rewind.reading.progress import OnProgress, ignored
from rewind.reading.sessions import SessionFilter, list_sessions
from rewind.store.library import Library
from rewind.store.session_files import names_session_file
from rewind.text import moment_of

_MOST = 200
"""Runs that are compared at once."""
_QUERY_WORDS = ("name", "model", "since", "status", "tag", "text", "limit")
_QUERY = re.compile(r"\s*(\w+)=")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """Which runs are good and which are bad, as it was given."""

    goods: tuple[str, ...] = ()
    bads: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    """Good and bad ones alike; the tests tell which are bad."""
    bad_if: tuple[str, ...] = ()
    """See :mod:`rewind.compare.outcome_test`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A run that was named and is not compared."""

    session: Session
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBisection:
    """Where several bad runs left several good ones, and what tells them apart."""

    goods: tuple[ComparedSession, ...]
    bads: tuple[ComparedSession, ...]
    left_out: tuple[LeftOut, ...]
    parting: GroupFinding

    @property
    def diverges(self) -> bool:
        return self.parting.verdict in (GroupVerdict.CAUSE, GroupVerdict.PARTING)


def names_one_run(word: str) -> bool:
    """Whether it can only be the id, the name or the file of one run."""
    return _WILD.search(word) is None and _QUERY.match(word) is None


@contextmanager
def bisect_groups(
    home: Path, prices: Prices, choice: RunChoice, *, on_progress: OnProgress = ignored
) -> Iterator[GroupBisection]:
    """What tells bad runs from good ones. Texts are read as they are asked for, so the value is to be used inside the
    context. Raises UsageError, SessionNotFound, DamagedStore."""
    library = Library(home)
    tests = [outcome_test(written) for written in choice.bad_if]
    named = [_named(home, prices, words, on_progress) for words in (choice.goods, choice.bads, choice.runs)]
    sessions, left_out = _worth_comparing([session for side in named for session in side])
    with opened_side_by_side(library, sessions, on_progress) as opened:
        sides = {side.session.address: side for side in opened}
        empty = [side for side in opened if not side.run.moves]
        if empty and not choice.runs and all(map(names_one_run, (*choice.goods, *choice.bads))):
            raise SessionNotFound(
                f"Session {empty[0].id} has no steps: there is nothing to compare.",
                hint=f"rewind inspect {empty[0].ref}",
            )
        left_out += [LeftOut(session=side.session, reason="it has no steps") for side in empty]
        good, bad = (
            [sides[one.address] for one in side if one.address in sides and sides[one.address].run.moves]
            for side in named[:2]
        )
        if both := {side.id for side in good} & {side.id for side in bad}:
            raise UsageError(
                f"Session {min(both)} is given as good and as bad.", hint="rewind list shows which session is which"
            )
        for side in (sides[one.address] for one in named[2] if one.address in sides):
            if not side.run.moves:
                continue
            match holds_any(tests, facts_of_run(side, library, prices)):
                case None:
                    left_out.append(LeftOut(session=side.session, reason="the test does not tell: not known of it"))
                case is_bad:
                    (bad if is_bad else good).append(side)
        _check_both_sides(choice, good, bad)
        parting = compare_groups([side.run for side in good], [side.run for side in bad])
        yield GroupBisection(goods=tuple(good), bads=tuple(bad), left_out=tuple(left_out), parting=parting)


def _check_both_sides(choice: RunChoice, good: Sequence[object], bad: Sequence[object]) -> None:
    if good and bad:
        return
    tests = ", ".join(map(repr, choice.bad_if))
    total = len(good) + len(bad)
    if choice.runs and total:
        runs = "The one run is" if total == 1 else f"All {total} runs are"
        raise SessionNotFound(
            f"{runs} {'good' if good else 'bad'} by {tests}: there is nothing to compare with.",
            hint="another test with --bad-if, or more runs: rewind list",
        )
    raise SessionNotFound(
        f"There is no {'bad' if good else 'good'} run that could be compared.", hint="rewind list shows the sessions"
    )


# ── which runs ───────────────────────────────────────────────────────────────────────────────────────────────


def _named(home: Path, prices: Prices, words: Sequence[str], on_progress: OnProgress) -> list[Session]:
    """The runs that the words name, each once, the oldest first."""
    found: dict[str, Session] = {}
    for word in words:
        for session in _sessions(home, prices, word, on_progress):
            found[session.address] = session
    if len(found) > _MOST:
        raise UsageError(
            f"{shlex.join(words)} names {len(found):,} sessions; at most {_MOST} are compared.",
            hint="add limit=100 or since=7d to the query",
        )
    return sorted(found.values(), key=lambda session: session.start.started)


def _sessions(home: Path, prices: Prices, word: str, on_progress: OnProgress) -> list[Session]:
    library = Library(home)
    if query := _QUERY.match(word):
        if query[1] in _QUERY_WORDS:
            return _queried(home, prices, word, on_progress)
        raise UsageError(
            f"{query[1]!r} is not a word of a query: {', '.join(_QUERY_WORDS)}.",
            hint="for example 'name=refund* status=ok since=7d'",
        )
    if _WILD.search(word):
        if names_session_file(word) or "/" in word:
            return [library.find(path) for path in _files(word)]
        return _queried(home, prices, f"name={shlex.quote(word)}", on_progress)
    session, step = split_step(word)
    if step is not None:
        raise UsageError(
            f"bisect compares whole sessions, not steps ({word!r}).", hint=f"rewind diff {word} …, or {session}"
        )
    return [library.find(word)]


def _files(pattern: str) -> list[str]:
    path = Path(pattern).expanduser()
    found = sorted(map(str, Path(path.anchor).glob(str(path.relative_to(path.anchor)))))
    if not found:
        raise SessionNotFound(
            f"No file matches {pattern!r}.",
            hint="the path is taken from the current folder; rewind export writes files",
        )
    return found


def _queried(home: Path, prices: Prices, query: str, on_progress: OnProgress) -> list[Session]:
    wanted, limit = read_query(query, now=SystemClock().now())
    listing = list_sessions(home, prices, wanted, limit=limit, on_progress=on_progress)
    if not listing.rows:
        raise SessionNotFound(f"No session matches {query!r}.", hint="rewind list shows the sessions")
    return [row.session for row in listing.rows]


def read_query(query: str, *, now: float) -> tuple[SessionFilter, int]:
    """``name=refund* status=ok since=7d``, and how many at most, 0 for all. Raises UsageError."""
    values: dict[str, list[str]] = {word: [] for word in _QUERY_WORDS}
    try:
        words = shlex.split(query)
    except ValueError as problem:
        raise UsageError(f"{query!r} is not a valid query: {problem}.", hint="quote a value with blanks") from problem
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in values:
            raise UsageError(
                f"{word!r} in {query!r} is not KEY=VALUE with a key of {', '.join(_QUERY_WORDS)}.",
                hint="for example 'name=refund* status=ok since=7d'; quote a value with blanks",
            )
        values[name].append(value)
    for name in ("name", "model", "since", "limit"):
        if len(values[name]) > 1:
            raise UsageError(f"{name}= is given twice in {query!r}.", hint="a session must pass all of a query")
    known = [outcome.value for outcome in Outcome]
    if unknown := [status for status in values["status"] if status not in known]:
        raise UsageError(f"{unknown[0]!r} is not a status: {', '.join(known)}.", hint="rewind list --help")
    limit = values["limit"][0] if values["limit"] else "0"
    if not re.fullmatch(r"\d{1,6}", limit, re.ASCII):
        raise UsageError(f"limit={limit} is not a number.", hint="limit=20 takes the 20 newest")
    try:
        since = moment_of(values["since"][0], now=now) if values["since"] else None
    except ValueError as problem:
        raise UsageError(str(problem), hint="since=7d, since=2026-11-01") from problem
    return (
        SessionFilter(
            name=values["name"][0] if values["name"] else None,
            model=values["model"][0] if values["model"] else None,
            since=since,
            statuses=tuple(values["status"]),
            tags=tuple(values["tag"]),
            texts=tuple(values["text"]),
        ),
        int(limit),
    )


def _worth_comparing(sessions: Sequence[Session]) -> tuple[list[Session], list[LeftOut]]:
    """Each once. A run that goes on has no outcome yet; a replay, or a part of another run, is that run once more, and
    would count twice."""
    chosen = list({session.address: session for session in sessions}.values())
    there = {session.id for session in chosen}
    kept, left_out = [], []
    for session in chosen:
        if session.status is Status.RUNNING:
            left_out.append(LeftOut(session=session, reason="it is still running"))
        elif session.start.replay_of in there:
            left_out.append(LeftOut(session=session, reason=f"it is a replay of {session.start.replay_of}"))
        elif session.start.part_of in there:
            left_out.append(LeftOut(session=session, reason=f"it is a part of {session.start.part_of}"))
        else:
            kept.append(session)
    return kept, left_out


def facts_of_run(side: ComparedSession, library: Library, prices: Prices) -> OutcomeFacts:
    """What tests of the outcome look at."""
    session, run = side.session, side.run
    totals = library.totals(session, prices)
    end = session.end
    return OutcomeFacts(
        exit_code=None if end is None or session.is_probe else end.exit_code,
        status=outcome_of(session),
        tags=session.start.tags,
        tools=_tools(run),
        text=_last_words(run),
        cost=None if totals.unpriced else totals.cost,
        steps=side.steps,
        seconds=None if end is None else max(0.0, end.ended - session.start.started),
    )


def _tools(run: ComparedRun) -> Counter[str]:
    """What models asked for; what the agent ran under ``@rewind.tool`` without being asked counts, too."""
    asked: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for move in run.moves:
        answered = run.answered(move.index)
        if move.sketch is not None:
            asked.update(part.name for part in (answered.parts if answered else ()) if isinstance(part, ToolUse))
        else:
            messages = run.asked(move.index).messages
            ran.update(part.name for message in messages for part in message.parts if isinstance(part, ToolUse))
    return asked | ran


def _last_words(run: ComparedRun) -> str:
    """What a model said last; empty where none said anything."""
    for move in reversed(run.moves):
        answered = run.answered(move.index) if move.sketch is not None else None
        if answered is not None and answered.text.strip():
            return answered.text
    return ""
