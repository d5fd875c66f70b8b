"""A cause is proven by running the bad run again with one thing put back."""

import json
import os
import pty
import re
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from rewind.cli.main import run
from rewind.compare.divergence import Finding, bisect
from rewind.compare.run import ComparedRun
from rewind.demo.run import Block, DemoProvider, _Handler
from rewind.demo.run import answer as demo_answer
from rewind.errors import ExitCode
from rewind.model.step import Step
from rewind.runs.probe import NothingToProve, prove
from rewind.runs.proof import Proof, ProveOptions
from rewind.runs.record import RecordOptions, record
from rewind.store.library import Library

pytestmark = pytest.mark.e2e

AGENT = """
import os
import sys
from pathlib import Path
from typing import Any
from rewind.demo import agent

assert os.environ["ANTHROPIC_API_KEY"]
agent.ORDERS["8821"]["visits"] = int(os.environ.get("VISITS", 7))
agent.run("8821", Path(sys.argv[1]).read_text())
"""


class Bench:
    """A good run and a bad one, recorded with the real gateway against the demo's model."""

    def __init__(self, home: Path, folder: Path, provider: DemoProvider) -> None:
        self.home = home
        self._folder = folder
        self._provider = provider
        self._readers: list[Any] = []
        (folder / "agent.py").write_text(AGENT)

    def record(self, name: str, system: str) -> str:
        file = self._folder / f"{name}.txt"
        file.write_text(system)
        variables = {"ANTHROPIC_BASE_URL": self._provider.url, "ANTHROPIC_API_KEY": "sk-ant-demo-0001"}
        os.environ.update(variables)
        command = (sys.executable, str(self._folder / "agent.py"), str(file))
        result = record(RecordOptions(command=command, home=self.home, name=name, variables=variables))
        assert result.exit_code == 0
        return result.session_id

    def run(self, session: str) -> ComparedRun:
        library = Library(self.home)
        reader = library.open(library.find(session))
        self._readers.append(reader)

        def bodies(step: Step) -> tuple[bytes, bytes]:
            assert step.response is not None
            return reader.blob(step.request.body), reader.blob(step.response.body)

        return ComparedRun(reader.recording(), bodies)

    def finding(self, good: str, bad: str) -> Finding:
        return bisect(self.run(good), self.run(bad))

    def prove(self, finding: Finding, bad: str, **more: Any) -> Proof:
        return prove(finding, Library(self.home).find(bad), ProveOptions(home=self.home, **more))

    @property
    def asked(self) -> int:
        return self._provider.asked

    def stop_provider(self) -> None:
        self._provider.shutdown()
        self._provider.server_close()

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with DemoProvider() as provider:
        one = Bench(tmp_path / "store", tmp_path, provider)
        yield one
        one.close()


@pytest.fixture
def two_runs(bench: Bench) -> Bench:
    bench.record("good", "Be kind. Look the account up, then refund what is due.")
    bench.record("bad", "Be nice. Look the account up, then refund only after explicit confirmation.")
    return bench


def bisect_proving(bench: Bench, *more: str) -> int:
    return run(["bisect", "good", "bad", "--prove", "--home", str(bench.home), *more])


def test_the_command_says_what_causes_it_with_its_counts(
    two_runs: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capfd.readouterr()
    monkeypatch.setenv("COLUMNS", "110")
    assert bisect_proving(two_runs, "--yes") == ExitCode.DIFFERENT
    shown, talk = capfd.readouterr()
    verdict = shown[shown.index("✓ The system prompt causes it") :]
    assert verdict.startswith(
        "✓ The system prompt causes it: bad in 5 of 5 as it was, in 0 of 5 with it put back\n"
        "\n"
        "As it was  bad in 5 of 5, 100% (40% to 100%)\n"
        "Put back   the system prompt: bad in 0 of 5, 0% (0% to 60%)\n"
        "             causes it: difference 15% to 100%\n"
        "Smallest   1 of 2 changed sentences turns it:\n"
    )
    assert "put back alone: bad in 0 of 5, causes it: difference 15% to 100%" in verdict
    assert "Sure       95%, every look counted\n" in verdict
    assert "10 to 40 live calls: as it was, and with the system prompt put back, in turns" in talk
    assert "about $0.0" in talk and "run for real, 10 to 40 times: lookup_account, check_order" in talk
    calls = int(re.search(r"(\d+) live calls, \$", verdict)[1])  # type: ignore[index]
    assert len(re.findall(r"(?m)^  ..?/40 · \$0\.0", talk)) == calls <= 22


def coin(pattern: str, answer: Callable[[dict[str, Any]], list[Block]]) -> Callable[[dict[str, Any]], list[Block]]:
    """A model that refuses by a pattern, whatever its prompt says: b is bad."""
    drawn = cycle(pattern)

    def said(request: dict[str, Any]) -> list[Block]:
        results = str(request["messages"]).count("'tool_result'")
        prompt = "explicit confirmation" if results == 2 and next(drawn) == "b" else "refund"
        return answer({**request, "system": prompt})

    return said


def test_money_that_runs_out_leaves_what_is_known(two_runs: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert bisect_proving(two_runs, "--max-cost", "0.002") == ExitCode.DIFFERENT
    shown, talk = capfd.readouterr()
    assert "never beyond $0.002 (--max-cost)" in " ".join(talk.split())
    assert "? Cannot tell yet: about 8 more calls\n" in shown
    assert "stopped early: the limit of $0.002 is reached: $0.0" in shown


def test_a_coin_is_never_proven(
    two_runs: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first answer put back is good, as is the third as it was: one of each would have been proof enough once.
    monkeypatch.setattr("rewind.demo.run.answer", coin("bgbggbgbbb", demo_answer))
    capfd.readouterr()
    assert bisect_proving(two_runs, "--max-calls", "10", "--max-cost", "1", "--json") == ExitCode.DIFFERENT
    view = json.loads(capfd.readouterr().out)["proof"]
    assert (view["verdict"], view["proven"], view["live_calls"]) == ("coin", [], 10)
    assert (view["control"]["bad"], view["control"]["of"]) == (3, 5)
    (trial,) = view["trials"]
    assert (trial["bad"], trial["of"], trial["effect"]["verdict"]) == (3, 5, "cannot_tell")
    assert trial["effect"]["difference"][0] < 0 < trial["effect"]["difference"][1]
    assert view["more_calls"] > 0 and view["stopped"] == "the limit of 10 live calls is reached"


def test_without_a_terminal_nothing_is_asked_before_somebody_says_yes(
    two_runs: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    before = two_runs.asked
    capfd.readouterr()
    assert bisect_proving(two_runs) == ExitCode.USAGE
    talk = capfd.readouterr().err
    assert "--yes or --max-cost is needed. Nothing was asked." in talk
    assert re.search(r"rewind .*bisect [0-9a-f]{8} [0-9a-f]{8} --prove --yes", talk)
    assert two_runs.asked == before


@pytest.mark.parametrize("said", ["n", "y"])
def test_on_a_terminal_it_asks(two_runs: Bench, said: str) -> None:
    """The provider is gone, so a yes is seen by what becomes of the first probe."""
    two_runs.stop_provider()
    command = [sys.executable, "-m", "rewind", "bisect", "good", "bad", "--prove", "--home", str(two_runs.home)]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, command)
    shown = b""
    try:
        os.write(terminal, said.encode() + b"\n")
        while block := os.read(terminal, 4096):
            shown += block
    except OSError:
        pass  # the terminal is gone with the child
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert b"Go on? [y/N]" in shown
    assert code == (ExitCode.USAGE if said == "n" else ExitCode.ENVIRONMENT), shown.decode()


def test_a_provider_that_is_gone_is_an_error_and_no_verdict(two_runs: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    two_runs.stop_provider()
    capfd.readouterr()
    assert bisect_proving(two_runs, "--yes") == ExitCode.ENVIRONMENT
    shown, talk = capfd.readouterr()
    assert "The provider could not be asked: " in talk and "Nothing is known of the cause." in talk
    assert "As it was" not in shown + talk


@pytest.mark.parametrize(("status", "probes"), [(401, 1), (529, 3)])
def test_a_provider_that_rejects_every_probe_is_an_error_and_no_verdict(
    two_runs: Bench, status: int, probes: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(handler: Any) -> None:
        handler.rfile.read(int(handler.headers["content-length"]))
        handler.server.next_number()
        handler.send_error(status)

    monkeypatch.setattr(_Handler, "do_POST", reject)
    before = two_runs.asked
    capfd.readouterr()
    assert bisect_proving(two_runs, "--yes") == ExitCode.ENVIRONMENT
    assert f"The provider could not be asked: it answered {status}." in capfd.readouterr().err
    assert two_runs.asked == before + probes


def test_an_agent_that_does_not_start_without_its_key_is_an_error_and_no_verdict(
    two_runs: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    capfd.readouterr()
    assert bisect_proving(two_runs, "--yes") == ExitCode.ENVIRONMENT
    assert "The provider could not be asked: ANTHROPIC_API_KEY is not set here" in capfd.readouterr().err


def test_tools_may_return_something_else_than_they_did(
    two_runs: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISITS", "8")
    capfd.readouterr()
    assert bisect_proving(two_runs, "--yes", "--max-calls", "2", "--json") == ExitCode.DIFFERENT
    shown, talk = capfd.readouterr()
    proof = json.loads(shown)["proof"]
    assert (proof["drifted"], proof["verdict"], proof["more_calls"]) == (2, "cannot_tell", 8), (
        "one of each proves nothing"
    )
    assert "what these tools return may differ from what they returned" in talk
    assert bisect_proving(two_runs, "--yes", "--exact") == ExitCode.MISS
    assert "A probe never reached the step." in capfd.readouterr().err


def test_runs_that_do_not_part_leave_nothing_to_prove(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    good = bench.record("good", "Look the account up, then refund what is due.")
    bad = bench.record("bad", "Look the account up, then refund what is due.")
    with pytest.raises(NothingToProve):
        bench.prove(bench.finding(good, bad), bad)
    before = bench.asked
    capfd.readouterr()
    assert bisect_proving(bench, "--yes") == ExitCode.OK
    assert "There is nothing to prove: the runs do not part. Nothing was asked." in capfd.readouterr().err
    assert bench.asked == before
