"""What two runs stood on: the packages that their requests name, their code, their lock files.

SDKs say on the wire who they are (``User-Agent`` and a few headers of their own), so a recording made by any Rewind
can be asked. Code and lock files are in its surroundings, where those were looked up.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from rewind.dataclass import dataclass
from rewind.model.http import Headers
from rewind.model.session import Recording, Surroundings

_AGENTS = frozenset({"user-agent", "x-goog-api-client"})
_LANGUAGE, _PACKAGE, _RUNTIME, _RUNNING = (
    f"x-stainless-{name}" for name in ("lang", "package-version", "runtime", "runtime-version")
)
"""What the SDKs that Stainless makes tell of themselves (OpenAI's, Anthropic's and others)."""
_TELLING = _AGENTS | {_LANGUAGE, _PACKAGE, _RUNTIME, _RUNNING}

_COMMENT = re.compile(r"\([^()]*\)")
_SDK = re.compile(r"([A-Za-z][\w.-]*)/([A-Za-z]+) (v?\d[\w.+-]*)")
"""``AsyncOpenAI/Python 2.15.0``"""
_PRODUCT = re.compile(r"([A-Za-z][\w.-]*)/(v?\d[\w.+-]*)")
"""``python-httpx/0.28.1``"""
_AWS = re.compile(r"(?:lang|md)/([A-Za-z][\w.-]*)#(v?\d[\w.+-]*)")
"""``lang/python#3.11.9``, as AWS writes it"""
_VERSION = re.compile(r"v?\d[\w.+-]*")
_FAMILIES = ("anthropic", "openai")
"""``AsyncAnthropicBedrock`` and ``AzureOpenAI`` are other clients of the same package."""
_NAMES = {
    "cpython": "python",
    "gl-node": "node",
    "gl-python": "python",
    "google-genai-sdk": "google-genai",
    "nodejs": "node",
    "python-httpx": "httpx",
    "python-requests": "requests",
    "python-urllib": "python",
}
_NO_PACKAGES = frozenset(
    {"applewebkit", "chrome", "gecko", "go-http-client", "mozilla", "os", "safari", "ua", "unknown"}
)
"""Names with a number behind them that is not the version of anything the agent chose."""

Versions = dict[str, str]
_Told = tuple[str, Headers]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """A package that both runs used, each in another version."""

    name: str
    before: str
    after: str


def versions_of(recording: Recording) -> Versions:
    """The versions that its requests tell, by name: ``{"anthropic (python)": "0.84.0", "python": "3.11.9"}``.

    A run whose processes have different ones gets them all, as in ``"3.11.9, 3.12.1"``.
    """
    found: dict[str, set[str]] = {}
    for family, headers in {_told(step.request.provider, step.request.head.headers) for step in recording.steps}:
        for name, version in _versions(family, headers):
            found.setdefault(name, set()).add(version.removeprefix("v"))
    return {name: ", ".join(_most_exact(found[name])) for name in sorted(found)}


def changed_versions(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[VersionChange, ...]:
    """What is named in both and differs. What only one run used says where it went, not what was upgraded."""
    return tuple(
        VersionChange(name=name, before=version, after=after[name])
        for name, version in before.items()
        if after.get(name, version) != version
    )


def same_code(one: Surroundings | None, other: Surroundings | None) -> bool | None:
    """Whether two runs had the same commit and the same changes to it; ``None`` where that is not known."""
    if one is None or other is None or one.commit is None or other.commit is None:
        return None
    if one.commit != other.commit:
        return False
    if one.dirty is None or other.dirty is None:
        return None
    if not one.dirty or not other.dirty:
        return one.dirty == other.dirty
    return None if one.changes is None or other.changes is None else one.changes == other.changes


def changed_locks(one: Surroundings | None, other: Surroundings | None) -> tuple[str, ...]:
    """The lock files that are not the same in both, or only in one; none where one of them is not known."""
    if one is None or other is None:
        return ()
    names = one.locks.keys() | other.locks.keys()
    return tuple(sorted(name for name in names if one.locks.get(name) != other.locks.get(name)))


def _told(provider: str, headers: Headers) -> _Told:
    """The few headers that tell of versions; a run has many requests and few different ones of these."""
    kept = ((name.lower(), value) for name, value in headers)
    family = next((family for family in _FAMILIES if family in provider), "")
    return family, tuple((name, value) for name, value in kept if name in _TELLING)


def _versions(family: str, headers: Headers) -> Iterator[tuple[str, str]]:
    sent = dict(headers)
    package, named = sent.get(_PACKAGE, ""), False
    for text in (_COMMENT.sub("", value) for name, value in headers if name in _AGENTS):
        for product, language, version in _SDK.findall(text):
            named = named or version == package
            yield f"{_package(product)} ({language.lower()})", version
        for product, version in (*_PRODUCT.findall(text), *_AWS.findall(text)):
            if product.lower() not in _NO_PACKAGES:
                yield _plain(product), version
    if package and not named:  # a framework has put its own name into User-Agent
        yield f"{family or 'sdk'} ({sent.get(_LANGUAGE, 'unknown')})", package
    if _VERSION.fullmatch(running := sent.get(_RUNNING, "")):
        yield _plain(sent.get(_RUNTIME, "runtime")), running


def _plain(product: str) -> str:
    return _NAMES.get(product.lower(), product.lower())


def _package(product: str) -> str:
    lowered = product.lower()
    return next((family for family in _FAMILIES if family in lowered), lowered.removeprefix("async"))


def _most_exact(versions: Iterable[str]) -> list[str]:
    """Without those of which another one tells more: some clients know 3.11 where others know 3.11.9."""
    known = sorted(versions)
    return [one for one in known if not any(other.startswith(f"{one}.") for other in known)]
