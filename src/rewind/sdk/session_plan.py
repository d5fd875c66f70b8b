"""What a session is asked to be, settled when it begins: settings read, the recording that answers found."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rewind.errors import EnvironmentProblem, SessionNotFound, UsageError
from rewind.gateway.options import UpstreamOptions
from rewind.inprocess.run import InProcessOptions
from rewind.model.session import Session
from rewind.settings import read_settings
from rewind.store.cassette.write import write_cassette, write_cassette_file
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library

if TYPE_CHECKING:
    from rewind.sdk.modes import Mode, OnMiss, PathLike


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """The arguments of ``rewind.session``, as they were given and checked."""

    name: str | None = None
    mode: str | None = None
    of: "PathLike | None" = None
    home: "PathLike | None" = None
    tags: Mapping[str, str] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    all_hosts: bool | None = None
    live_hosts: Sequence[str] = ()
    ignore: Sequence[str] = ()
    allow_drift: bool = False
    on_miss: "OnMiss" = "raise"
    tools: Literal["replay", "live"] = "replay"
    cassette: "PathLike | None" = None
    connect_to: Sequence[str] = ()
    upstream_ca: "PathLike | None" = None
    upstream_proxy: str | None = None

    def engine_options(self, mode: "Mode") -> tuple[InProcessOptions, SessionReader | None]:
        """What the engine is to do, and the recording that answers. Raises RewindError."""
        settings = read_settings(
            {
                "home": _text(self.home),
                "hosts": tuple(self.hosts),
                "all_hosts": None if self.all_hosts is None else ("true" if self.all_hosts else "false"),
                "ignore": tuple(self.ignore),
                "upstream_ca": _text(self.upstream_ca),
                "upstream_proxy": self.upstream_proxy,
            }
        )
        upstream = UpstreamOptions(
            connect_to=tuple(self.connect_to), ca=settings.upstream_ca, proxy=settings.upstream_proxy
        )
        library = Library(settings.home)
        recorded = None if mode == "record" else self._recorded(library, mode)
        tape = None if recorded is None else library.open(recorded)
        return InProcessOptions(
            home=settings.home,
            name=self.name,
            mode="record" if tape is None else "replay",
            tape=tape,
            on_miss="live" if mode == "extend" else "refuse",
            allow_drift=self.allow_drift,
            tools=self.tools,
            hosts=settings.hosts,
            all_hosts=settings.all_hosts,
            allowed_hosts=tuple(self.live_hosts),
            ignore=settings.ignore,
            upstream=upstream,
            tags=dict(self.tags),
            keep=mode != "replay",
        ), tape

    def write_cassette(self, home: Path, session_id: str) -> None:
        """The session that has just ended, as the file that was asked for. Raises RewindError."""
        library = Library(home)
        with library.open(library.find(session_id)) as reader:
            data = write_cassette(reader.recording(), reader.blob)
        path = Path(_text(self.cassette) or "")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_cassette_file(path, data)
        except OSError as problem:
            raise EnvironmentProblem(
                f"The cassette {path} cannot be written: {problem.strerror}.",
                hint=f"rewind export {session_id} --output FILE.rw",
            ) from problem

    def _recorded(self, library: Library, mode: "Mode") -> Session | None:
        """The recording that answers; ``None`` where there is none yet and one may be made."""
        if self.of is not None:
            return library.find(_text(self.of) or "")
        if self.cassette is not None and (mode == "replay" or Path(self.cassette).exists()):
            return library.find(_text(self.cassette) or "")
        if self.name is None:
            if mode == "extend":
                return None
            raise UsageError(
                "A replay needs to know what to replay: it has no name, and `of` says nothing.",
                hint='rewind.session("NAME", mode="replay"), or of=ID, or of="FILE.rw"',
            )
        try:
            found = library.find(self.name)
            if found.start.name == self.name:
                return found
            # Names come before prefixes, so it only looks like the id of another one.
            raise SessionNotFound(f"No session is called {self.name!r}.", hint="See them all: rewind list")
        except SessionNotFound:
            if mode == "extend":
                return None
            raise


def _text(path: "PathLike | None") -> str | None:
    return None if path is None else os.fspath(path)
