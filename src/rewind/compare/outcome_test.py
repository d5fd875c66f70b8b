"""When a run counts as bad: ``--bad-if 'exit!=0'``, ``'tool:refund absent'``, ``'text~cannot'``.

A test looks at what came of a run, or of one answer. What is not known of it decides nothing: the test then says
``None``, and neither "bad" nor "good" is guessed.
"""

import operator
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import UsageError
from rewind.model.message import Answered
from rewind.model.outcome import Outcome

_HINT = "rewind bisect --help lists the tests: exit!=0, status=failed, tag=bad, 'tool:refund absent', text~cannot, …"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeFacts:
    """What a test can look at; ``None`` where it is not known."""

    exit_code: int | None = None
    status: Outcome | None = None
    tags: Mapping[str, str] | None = None
    tools: Counter[str] | None = None
    """How often each tool was asked for."""
    text: str | None = None
    """What was said last."""
    cost: float | None = None
    """US dollars."""
    steps: int | None = None
    seconds: float | None = None


def facts_of_answer(answered: Answered | None) -> OutcomeFacts:
    """Of one answer alone: the tools it asks for, and its words. Nothing is known where none came."""
    if answered is None:
        return OutcomeFacts()
    return OutcomeFacts(tools=Counter(use.name for use in answered.tool_uses), text=answered.text)


@dataclass(frozen=True, slots=True)
class OutcomeTest:
    """One test, parsed."""

    written: str
    """As it was given."""
    _holds: Callable[[OutcomeFacts], bool | None]

    def holds(self, facts: OutcomeFacts) -> bool | None:
        """``None`` where what it asks about is not known."""
        return self._holds(facts)


def holds_any(tests: Iterable[OutcomeTest], facts: OutcomeFacts) -> bool | None:
    """Whether one of several tests holds; ``None`` where none does and one cannot say."""
    verdicts = [test.holds(facts) for test in tests]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def outcome_test(written: str) -> OutcomeTest:
    """The test that is written so. Raises UsageError."""
    for pattern, build in _FORMS:
        if found := pattern.fullmatch(written.strip()):
            return OutcomeTest(written.strip(), build(found))
    raise UsageError(f"{written!r} is not a test that --bad-if knows.", hint=_HINT)


# ── the forms ────────────────────────────────────────────────────────────────────────────────────────────────

_Holds = Callable[[OutcomeFacts], bool | None]
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARISON = r"\s*(?P<sign>==|!=|<=|>=|=|<|>)\s*"
_IS = r"\s*(?P<sign>==|!=|=)\s*"
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


def _number(read: Callable[[OutcomeFacts], float | None]) -> Callable[[re.Match[str]], _Holds]:
    def build(found: re.Match[str]) -> _Holds:
        compare, limit = _COMPARISONS[found["sign"]], float(found["value"])
        limit *= _SECONDS[found.groupdict().get("unit") or ""]

        def holds(facts: OutcomeFacts) -> bool | None:
            value = read(facts)
            return None if value is None else compare(value, limit)

        return holds

    return build


def _status(found: re.Match[str]) -> _Holds:
    known = [outcome.value for outcome in Outcome]
    if found["value"] not in known:
        raise UsageError(f"{found['value']!r} is not a status: {', '.join(known)}.", hint="rewind list --help")
    wanted, compare = Outcome(found["value"]), _COMPARISONS[found["sign"]]
    return lambda facts: None if facts.status is None else compare(facts.status, wanted)


def _tag(found: re.Match[str]) -> _Holds:
    key, equals, value = found["value"].partition("=")
    wanted = found["sign"] != "!="

    def holds(facts: OutcomeFacts) -> bool | None:
        if facts.tags is None:
            return None
        return (key in facts.tags and (not equals or facts.tags[key] == value)) is wanted

    return holds


def _tool(found: re.Match[str]) -> _Holds:
    name, wanted = found["name"], found["fate"] != "absent"
    return lambda facts: None if facts.tools is None else bool(facts.tools[name]) is wanted


def _tool_count(found: re.Match[str]) -> _Holds:
    name = found["name"]
    return _number(lambda facts: None if facts.tools is None else facts.tools[name])(found)


def _text(found: re.Match[str]) -> _Holds:
    words, wanted = found["value"], found["sign"] == "~"
    if len(words) > 2 and words[0] == words[-1] == "/":
        try:
            pattern = re.compile(words[1:-1], re.IGNORECASE)
        except re.error as problem:
            plain = shlex.quote(f"text{found['sign']}{words[1:-1]}")
            raise UsageError(
                f"{words} is not a valid pattern: {problem}.", hint=f"as plain text: --bad-if {plain}"
            ) from problem
        return lambda facts: None if facts.text is None else (pattern.search(facts.text) is not None) is wanted
    needle = _plain(words)
    return lambda facts: None if facts.text is None else (needle in _plain(facts.text)) is wanted


def _plain(text: str) -> str:
    """Less capitals, the width of white space, and the two ways to write an apostrophe."""
    return " ".join(text.casefold().replace("’", "'").split())


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], _Holds]], ...] = (
    (re.compile(rf"exit{_COMPARISON}(?P<value>\d{{1,3}})", re.ASCII), _number(lambda facts: facts.exit_code)),
    (re.compile(rf"status{_IS}(?P<value>\w+)"), _status),
    (re.compile(rf"tag{_IS}(?P<value>[^\s=][^\n]*)"), _tag),
    (re.compile(r"tool:(?P<name>[^\s<>=!]+)(?:\s+(?P<fate>present|absent))?"), _tool),
    (re.compile(rf"tool:(?P<name>[^\s<>=!]+){_COMPARISON}(?P<value>\d{{1,6}})", re.ASCII), _tool_count),
    (re.compile(r"text\s*(?P<sign>!?~)\s*(?P<value>\S.*)", re.DOTALL), _text),
    (re.compile(rf"cost{_COMPARISON}\$?(?P<value>\d+(?:\.\d+)?)", re.ASCII), _number(lambda facts: facts.cost)),
    (re.compile(rf"steps{_COMPARISON}(?P<value>\d{{1,9}})", re.ASCII), _number(lambda facts: facts.steps)),
    (
        re.compile(rf"time{_COMPARISON}(?P<value>\d+(?:\.\d+)?) ?(?P<unit>ms|s|min|h)?", re.ASCII),
        _number(lambda facts: facts.seconds),
    ),
)
