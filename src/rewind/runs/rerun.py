"""A recorded command, run again: what is taken over from its session, and what may not be.

The words of a session that came from elsewhere may be anybody's. So its command is shown and never run; and of the
environment it remembers, only names that say what they are come near an agent: no file may set ``LD_PRELOAD``, and none
may send a live call, with the user's own key, to an address that the file chose.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rewind.credentials import variable_kind
from rewind.errors import EnvironmentProblem, UsageError
from rewind.model.clock import Clock
from rewind.model.ids import SessionId
from rewind.model.session import Recording, Session, SessionStart
from rewind.providers.hosts import endpoints_from_environment
from rewind.store.library import Library
from rewind.version import __version__

DUMMY_KEY = "rewind-replay-needs-no-key"
"""For an agent that does not start without a key, where nobody is asked."""
_SHOWN = 300


def session_to_run(home: Path, ref: str) -> Session:
    """The session of that id, name, prefix or file. Raises SessionNotFound or AmbiguousSession."""
    return Library(home).find(ref)


def command_to_run(session: Session, given: tuple[str, ...] | None, invocation: str) -> tuple[str, ...]:
    """The user's own command, or the recorded one where it was recorded here. Raises UsageError.

    ``invocation`` is what was asked for, as ``replay run.rw``; for the hint.
    """
    if session.is_from_trace:
        raise _no_wire(session, invocation.partition(" ")[0])
    if given:
        return given
    if not session.is_foreign:
        return session.start.command
    recorded = shlex.join(session.start.command)
    if not recorded:
        raise UsageError(f"{session.ref} does not say which command to run.", hint=f"rewind {invocation} -- COMMAND")
    shown = recorded if len(recorded) <= _SHOWN else f"{recorded[:_SHOWN]}…"
    raise UsageError(
        f"{session.ref} came in a file, so its command is shown, not run: {shown}",
        hint=f"if you trust it, or give a command of your own: rewind {invocation} -- {shown}",
    )


def recorded_folder(start: SessionStart, verb: str) -> str:
    """Where the session was recorded. Raises EnvironmentProblem if the folder is gone."""
    if not Path(start.cwd).is_dir():
        raise EnvironmentProblem(
            f"The folder {start.cwd} where the session was recorded does not exist.",
            hint=f"Go to the agent's folder and give its command: rewind {verb} -- COMMAND",
        )
    return start.cwd


def refuse_traces(recording: Recording, verb: str) -> None:
    """Raises UsageError for a session whose steps were written down by a program, and never were on a wire."""
    if recording.is_from_trace:
        raise _no_wire(recording.session, verb)


def command_hint(recording: Recording) -> str | None:
    """What a hint says behind a command that runs the agent again; ``None`` where nothing can be run again."""
    if recording.is_from_trace:
        return None
    return " -- COMMAND" if recording.session.is_foreign else ""


def remembered_endpoints(session: Session, *, live: bool) -> dict[str, str]:
    """``*_BASE_URL`` and the like as they were set; where calls go ``live``, nobody else's."""
    if not session.is_foreign:
        return dict(session.start.base_urls)
    if live:
        return {}
    return {name: value for name, value in session.start.base_urls.items() if endpoints_from_environment({name: value})}


def remembered_key_variables(session: Session) -> tuple[str, ...]:
    """The names of variables that held credentials."""
    names = session.start.key_variables
    if not session.is_foreign:
        return names
    return tuple(name for name in names if variable_kind(name) is not None)


def trusted_start(session: Session) -> SessionStart:
    """What a run of ours takes over from the session it runs again; a stranger's addresses do not become ours."""
    return replace(
        session.start,
        base_urls=remembered_endpoints(session, live=True),
        key_variables=remembered_key_variables(session),
        imported=False,
    )


def rerun_start(
    before: SessionStart, command: tuple[str, ...], *, clock: Clock, here: bool, ignore: tuple[str, ...]
) -> SessionStart:
    """The first line of a session that runs another's command; ``here``: in our folder, not in the recorded one."""
    return replace(
        before,
        id=SessionId(os.urandom(4).hex()),
        command=command,
        cwd=str(Path.cwd()) if here else before.cwd,
        started=clock.now(),
        rewind_version=__version__,
        ignore=ignore,
        replay_of=None,
        forked_from=None,
        part_of=None,
    )


def ignored_endpoints(session: Session, environ: Mapping[str, str]) -> str | None:
    """A sentence on addresses that the file names and a live run does not follow."""
    if not session.is_foreign:
        return None
    others = {name: url for name, url in session.start.base_urls.items() if environ.get(name) != url}
    if not others:
        return None
    addresses = ", ".join(f"{name}={url}" for name, url in sorted(others.items()))
    setting = " ".join(f"{name}={shlex.quote(url)}" for name, url in sorted(others.items()))
    return (
        f"{session.ref} was recorded with {addresses}. Rewind ignores that, because live calls carry your key; steps "
        f"that went there may miss. If you trust the address, set it yourself: {setting} rewind …"
    )


def _no_wire(session: Session, verb: str) -> UsageError:
    doing = {"replay": "replayed", "fork": "forked", "bisect": "run again"}.get(verb, "run again")
    return UsageError(
        f"{session.ref} is a trace: it holds messages, not HTTP traffic, so it cannot be {doing}.",
        hint=f"rewind inspect {session.ref}, or rewind messages {session.ref} to go on from any step of it",
    )
