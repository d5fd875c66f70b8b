"""Replay: run the recorded command again with the tape in place of the world, and compare what it does.

The agent is started first; what answers it (``runs/taped_run.py``) is loaded, and the tape read, while it starts up.
Where something may still be wrong that must keep it from starting (a step to stop at, a file from elsewhere), that
comes first.
"""

import os
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from rewind.gateway.listener import listen
from rewind.model.session import Session
from rewind.redaction.redactor import Redactor
from rewind.redaction.removal import PatternedRedactor, compiled_patterns
from rewind.redaction.secrets import Secrets
from rewind.runs.child import AgentCommand
from rewind.runs.harness import SessionRecording, agent_again, behind_gateway
from rewind.runs.replay_options import ReplayOptions, ReplayResult
from rewind.runs.rerun import DUMMY_KEY, remembered_endpoints, remembered_key_variables, rerun_start, trusted_start
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.writer import Stream
from rewind.store.library import Library

if TYPE_CHECKING:
    from rewind.runs.taped_run import TapedRun


def replay(options: ReplayOptions) -> ReplayResult:
    """Run the command again; only the tape answers, unless the user asked for more."""
    session = options.session
    environ = {**_remembered(session, live=options.on_miss == "live"), **os.environ}
    agent = agent_again(session, options.command, f"replay {session.ref}", environ)
    if options.goes_online:
        options.upstream.check(os.environ)
    redactor = PatternedRedactor(Secrets.from_environment(os.environ), compiled_patterns(options.redact))
    redactor.secrets.add(DUMMY_KEY)
    with Library(options.home).open(session) as reader:
        agent = replace(agent, stdin=reader.output("stdin"))
        answers = None
        if options.stepping is not None or session.is_foreign:
            answers = _taped_run(options, reader, redactor, agent)
            agent = answers.attended(agent)
        printed: list[bytes] = []

        def keep_printed(name: Stream, data: bytes) -> None:
            if name == "stdout" and (answers is None or not answers.is_stopped):
                printed.append(data)

        with (
            closing(listen(options.port)) as listener,
            behind_gateway(
                agent,
                session.start,
                options.home,
                listener,
                lambda: _begin(options, agent, redactor) if options.on_miss == "live" else None,
                tee=keep_printed,
                offline=options.on_miss != "live",
                live_hosts=options.live_hosts,
                again=True,
            ) as run,
        ):
            return (answers or _taped_run(options, reader, redactor, agent)).through(run, printed)


def _taped_run(options: ReplayOptions, reader: SessionReader, redactor: Redactor, agent: AgentCommand) -> "TapedRun":
    from rewind.runs.taped_run import TapedRun  # lazily: mostly the agent is starting up meanwhile

    return TapedRun(options, reader, redactor, agent)


def _begin(options: ReplayOptions, agent: AgentCommand, redactor: Redactor) -> SessionRecording:
    """With ``--on-miss live`` the run becomes a session of its own."""
    start = rerun_start(
        trusted_start(options.session),
        agent.command,
        clock=options.clock,
        here=options.command is not None,
        ignore=options.ignore,
    )
    start = replace(start, replay_of=options.session.start.id)
    return SessionRecording(options.home, start, redactor, options.clock, stdin=agent.stdin)


def _remembered(session: Session, *, live: bool) -> dict[str, str]:
    """What the agent had in its environment: the same base URLs, and a dummy where it had a key."""
    dummies = dict.fromkeys(remembered_key_variables(session), DUMMY_KEY)
    return {**dummies, **remembered_endpoints(session, live=live)}
