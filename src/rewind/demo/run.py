"""The demo: record a good and a bad run through the real gateway, then replay one with the provider gone."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rewind.demo.provider import DemoProvider
from rewind.errors import ExitCode
from rewind.runs.record import RecordOptions, RecordResult, record
from rewind.runs.replay import ReplayOptions, replay
from rewind.store.library import Library

AGENT = (sys.executable, "-m", "rewind.demo.agent", "8821")
ORDER = "order 8821"


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo left behind."""

    code: ExitCode
    """0 when the replay was exact."""
    good: str
    bad: str
    """Ids of the two sessions."""


def run_demo(home: Path, say: Callable[[str], None]) -> Demo:
    """Record, record again, and replay: the main job from end to end."""
    with DemoProvider() as provider:
        variables = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-ant-demo-key-0001"}
        say(f"A support agent handles {ORDER}. Recording it through the gateway:")
        good = _record(home, "refund-good", AGENT, variables)
        say("")
        say("Somebody changed its system prompt. Recording it again:")
        bad = _record(home, "refund-bad", (*AGENT, "--strict"), variables)
        asked = provider.asked
    say("")
    say("The provider is gone now. Replaying the good run:")
    result = replay(ReplayOptions(session=Library(home).find(good.session_id), home=home))
    exact = result.output == "identical" and result.played == result.total and not result.misses
    worked = good.exit_code == 0 and bad.exit_code == 0
    say(
        f"{result.played}/{result.total} steps replayed · {result.network_calls} network calls · output {result.output}"
    )
    say("")
    say(_line("good", good))
    say(_line("bad", bad))
    say(f"{asked} calls went to the provider while recording, none in the replay.")
    code = ExitCode.AGENT_FAILED if not worked else ExitCode.OK if exact else ExitCode.DIFFERENT
    return Demo(code, good.session_id, bad.session_id)


def _record(home: Path, name: str, command: tuple[str, ...], variables: dict[str, str]) -> RecordResult:
    return record(RecordOptions(command=command, home=home, name=name, variables=variables))


def _line(label: str, result: RecordResult) -> str:
    tokens = "—" if result.tokens is None else f"{result.tokens:,}"
    return f"{label:5} {result.session_id}  {result.llm_calls} LLM calls  {tokens} tokens  {result.seconds:.1f} s"
