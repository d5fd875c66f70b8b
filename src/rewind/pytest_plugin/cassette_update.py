"""What goes into a test's cassette: a run as it was recorded, or an older cassette with a run's new steps behind."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import Portable, Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import Step
from rewind.store.portable import PortableReader
from rewind.version import __version__

Blob = Callable[[BlobId], bytes]
_USUAL_KEYS = ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "OPENAI_API_KEY")
"""Without these SDKs would complain of a key before anybody notices that there is no cassette."""
_SAID_BY_ALL = frozenset(
    {"", "api", "key", "token", "secret", "access", "com", "ai", "net", "io", "chat", "http"}
)
"""Words in names of hosts and variables that tell nothing."""
_ALSO = {
    "gemini": ("google",),
    "generativelanguage": ("gemini", "google"),
    "aiplatform": ("google",),
    "bedrock": ("aws",),
    "amazonaws": ("aws",),
    "x": ("xai",),
    "azure": ("openai",),
}
"""Word in the name of a host or an API → words in the names of its credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reel:
    """A recording, and where its bytes are."""

    recording: Recording
    blob: Blob


def reel_of(portable: Portable) -> Reel:
    return Reel(recording=portable.recording, blob=PortableReader(portable).blob)


def nothing() -> Portable:
    """The tape of a test that has no cassette."""
    start = SessionStart(
        id=SessionId("0" * 8),
        name=None,
        command=(),
        cwd="",
        started=0.0,
        rewind_version=__version__,
        key_variables=_USUAL_KEYS,
    )
    session = Session(start=start, end=None, status=Status.ENDED, folder="")
    return Portable(recording=Recording(session=session, steps=()), blobs={})


def of_the_test(reel: Reel, test: str, *, exit_code: int) -> Reel:
    """The reel as it may be committed: what was run is the test, and nothing tells of the machine it ran on."""
    recording = reel.recording
    session = recording.session
    start = replace(
        session.start,
        command=("pytest", test),
        cwd="",
        name=test,
        key_variables=_of_those_asked(session.start.key_variables, recording.steps),
        base_urls=_to_those_asked(session.start.base_urls, recording.steps),
    )
    end = session.end or SessionEnd(
        ended=max((step.request.ts for step in recording.steps), default=start.started),
        exit_code=exit_code,
        stdin=None,
        stdout=None,
        stderr=None,
        redactions=0,
    )
    ended = replace(session, start=start, end=replace(end, exit_code=exit_code), status=Status.ENDED)
    return replace(reel, recording=replace(recording, session=ended, surroundings=None))


def _of_those_asked(variables: Sequence[str], steps: Sequence[Step]) -> tuple[str, ...]:
    """Names of credentials that a replay needs dummies for: whatever else this machine has is nobody's business."""
    asked = {word for step in steps for word in _words(f"{step.request.head.host} {step.request.provider}")}
    asked |= {also for word, others in _ALSO.items() if word in asked for also in others}
    return tuple(name for name in variables if asked & _words(name))


def _words(text: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", text.lower())) - _SAID_BY_ALL


def _to_those_asked(urls: Mapping[str, str], steps: Sequence[Step]) -> dict[str, str]:
    """Variables that led the test to where it went."""
    hosts = {step.request.head.host.lower() for step in steps}
    return {name: url for name, url in urls.items() if (urlsplit(url).hostname or "") in hosts}


def live_steps(recording: Recording) -> list[Step]:
    """Those that the world answered."""
    return [step for step in recording.steps if step.response is not None and step.response.tape is None]


def as_if_live(reel: Reel) -> Reel:
    """Every answer counts as the world's: a cassette may have been made of a replay."""
    steps = tuple(
        step if step.response is None else replace(step, response=replace(step.response, tape=None))
        for step in reel.recording.steps
    )
    return replace(reel, recording=replace(reel.recording, steps=steps))


def extended(now: Portable, played: Sequence[Step], added: Reel, *, hosts: Sequence[str] = ()) -> Reel:
    """All that the cassette has, and behind it what went live: a diff shows new lines only.

    ``played`` is the tape that the run had. What the cassette got beside it meanwhile, from a test that shares it, is
    not added twice. New steps follow the old ones in time, too, so nothing that is worked out from the order changes.
    """
    start = now.session.start
    meanwhile = _keys(now.recording.steps) - _keys(played)
    fresh = []
    for step in live_steps(added.recording):
        keyed = _under_rules_of(start, step, added.blob)
        if meanwhile[keyed.request.agents_key] > 0:
            meanwhile[keyed.request.agents_key] -= 1
        else:
            fresh.append(keyed)
    other = added.recording.session.start
    session = replace(
        now.session,
        start=replace(
            start,
            hosts=tuple(dict.fromkeys((*start.hosts, *other.hosts, *hosts))),
            all_hosts=start.all_hosts or other.all_hosts,
            key_variables=tuple(dict.fromkeys((*start.key_variables, *other.key_variables))),
        ),
    )
    steps = (*now.recording.steps, *_numbered(fresh, after=now.recording.steps))
    before = PortableReader(now)

    def blob(name: BlobId) -> bytes:
        return before.blob(name) if name in now.blobs else added.blob(name)

    return Reel(recording=replace(now.recording, session=session, steps=steps), blob=blob)


def _keys(steps: Iterable[Step]) -> "Counter[MatchKey]":
    return Counter(step.request.agents_key for step in steps)


def _numbered(steps: Sequence[Step], *, after: Sequence[Step]) -> tuple[Step, ...]:
    first = max((step.index for step in after), default=0) + 1
    return tuple(
        replace(step, request=replace(step.request, index=index)) for index, step in enumerate(steps, first)
    )


def _under_rules_of(start: SessionStart, step: Step, blob: Blob) -> Step:
    """The match keys of one session are all made by its own rules."""
    request = HttpRequest(head=step.request.head, body=blob(step.request.body))
    key = understand(request, ignore=start.ignore, index=step.index).key
    return replace(step, request=replace(step.request, match_key=key))
