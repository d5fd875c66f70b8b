"""``fork(ForkOptions)`` from Python: a probe that goes as far as one answer, unseen, and ends the agent there."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rewind.edit.edits import parse_edit
from rewind.gateway.options import UpstreamOptions
from rewind.model.session import Status
from rewind.reading.prices import load_prices
from rewind.runs.fork import run as forking
from rewind.runs.fork.budget import Budget
from rewind.runs.fork.plan import ForkOptions
from rewind.runs.fork.run import ForkResult, fork
from rewind.store.library import Library
from support.answers import openai_error
from support.cli import KEYS
from support.forks import TALKS, numbered, talks
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

LINGERS = (
    TALKS
    + """
import signal, subprocess, time
if os.environ.get("LINGER"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("lingering", flush=True)
    time.sleep(600)
"""
)
"""Does not want to end, and has a child that holds its output open."""


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ForkResult]:
    """Fork in this process, with keys in the environment and none of the machine's proxies."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(forking, "GRACE_SECONDS", 0.3)

    def run(bench: Lab, session: str, step: int, *edits: str, **more: object) -> ForkResult:
        to = [word.removeprefix("--connect-to=") for word in bench.upstream if "connect-to" in word]
        options = ForkOptions(
            session=Library(bench.home).find(session),
            step=step,
            home=bench.home,
            edits=tuple(map(parse_edit, edits)),
            upstream=UpstreamOptions(connect_to=tuple(to), ca=bench.trust.ca_file),
            pricing=load_prices(),
            **more,  # type: ignore[arg-type]
        )
        return fork(options)

    return run


def test_a_probe_ends_the_agent_once_the_step_is_answered(
    lab: MakeLab, probe: Callable[..., ForkResult], capfd: pytest.CaptureFixture[str]
) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c", "d")).ok().session
    result = probe(bench, base, 2, "system=You are kind.", stop_after=True, quiet=True)
    assert result.answer is not None and result.answer.response is not None
    assert result.answer is not None and result.answer.index == 2
    assert result.answer.response.reading.text == "answer 5 to b"
    assert result.stopped == "step 2 is answered, and no more was asked for"
    assert not Library(bench.home).find(result.session_id).is_probe
    assert (len(result.reused), len(result.live)) == (1, 1)
    assert bench.provider.calls == 5, "what the agent still wanted was not asked"
    assert result.spent.usd == pytest.approx((21 * 0.15 + 8 * 0.60) / 1e6)
    assert (result.misses, result.unasked, result.broken) == ((), None, None)
    shown = capfd.readouterr()
    assert shown.out == "" and shown.err == ""
    library = Library(bench.home)
    session = library.find(result.session_id)
    assert session.status is Status.ENDED
    with library.open(session) as reader:
        assert (reader.output("stdout") or b"").startswith(b"answer 1 to a\n"), "unseen, but kept"


def test_an_agent_that_does_not_want_to_end_is_made_to_with_all_it_started(
    lab: MakeLab, probe: Callable[..., ForkResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = lab(numbered)
    base = bench.record([sys.executable, "-c", LINGERS, "a", "b"]).ok().session
    monkeypatch.setenv("LINGER", "1")
    result = probe(bench, base, 2, "response=Enough.", stop_after=True, quiet=True)
    assert result.answer is not None and result.answer.response is not None
    assert result.answer.response.reading.text == "Enough."
    assert result.live == () and bench.provider.calls == 2
    assert result.exit_code in (128 + 9, 128 + 15), "by force, or before it had stopped its ears"


def test_a_probe_waits_for_a_good_answer(lab: MakeLab, probe: Callable[..., ForkResult]) -> None:
    def moody(request: Request) -> Answer:
        if request.hit == 3:
            return openai_error(request, 429, "slow down", headers=(("retry-after-ms", "1"),))
        return numbered(request)

    agent = """
import openai
client = openai.OpenAI(max_retries=3)
for text in "abc":
    asked = [{"role": "user", "content": text}]
    print(client.chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content)
"""
    bench = lab(moody)
    base = bench.record([sys.executable, "-c", agent.replace('"abc"', '"ab"')]).ok().session
    result = probe(bench, base, 2, stop_after=True, quiet=True, command=(sys.executable, "-c", agent))
    assert result.answer is not None and result.answer.response is not None
    assert (result.answer.index, result.answer.response.reading.text) == (3, "answer 4 to b")


def test_keys_are_not_needed_where_nobody_is_asked(
    lab: MakeLab, probe: Callable[..., ForkResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = lab(numbered)
    needs_key = TALKS.replace('os.environ.get("OPENAI_API_KEY", "none")', 'os.environ["OPENAI_API_KEY"]')
    base = bench.record([sys.executable, "-c", needs_key, "a", "b"]).ok().session
    for name in KEYS:
        monkeypatch.delenv(name)
    said: list[str] = []
    result = probe(bench, base, 2, "response=Enough.", stop_after=True, quiet=True, announce=said.append)
    assert result.answer is not None and result.answer.index == 2 and said == []
    live = probe(bench, base, 2, quiet=True, announce=said.append)
    assert live.exit_code != 0 and "OPENAI_API_KEY" in said[0]


def test_one_purse_serves_several_forks(lab: MakeLab, probe: Callable[..., ForkResult]) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    cost = (21 * 0.15 + 8 * 0.60) / 1e6
    budget = Budget(1.5 * cost, load_prices())
    first, second, third = (probe(bench, base, 2, budget=budget, quiet=True) for _ in range(3))
    assert [len(result.live) for result in (first, second, third)] == [1, 1, 0]
    assert budget.spent == pytest.approx(2 * cost)
    assert third.stopped is not None and "is reached" in third.stopped


def test_what_cannot_be_started_leaves_no_session(
    lab: MakeLab, probe: Callable[..., ForkResult], tmp_path: Path
) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a")).ok().session
    broken = tmp_path / "agent"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(Exception, match="could not be started"):
        probe(bench, base, 1, command=(str(broken),))
    assert [session.id for session in Library(bench.home).sessions()] == [base]


def test_a_fork_that_is_marked_as_a_probe_says_so_and_is_not_the_last_session(
    lab: MakeLab, probe: Callable[..., ForkResult]
) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    marked = probe(bench, base, 2, stop_after=True, quiet=True, probe=True)
    library = Library(bench.home)
    assert marked.lineage.probe and library.find(marked.session_id).is_probe
    assert library.find("last").id == base
