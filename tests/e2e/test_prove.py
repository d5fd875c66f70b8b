"""A cause is proven by running the bad run again with one thing put back."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rewind.cli.main import run
from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding, bisect
from rewind.compare.proof import AnswerOutcome
from rewind.compare.run import ComparedRun
from rewind.demo.run import DemoProvider
from rewind.errors import ExitCode
from rewind.model.step import Step
from rewind.runs.probe import NothingToProve, ProbeResult, Proof, ProveOptions, prove
from rewind.runs.record import RecordOptions, record
from rewind.store.library import Library
from support.effort import sample

pytestmark = pytest.mark.e2e

AGENT = """
import sys
from pathlib import Path
from typing import Any
from rewind.demo import agent

agent.run("8821", Path(sys.argv[1]).read_text())
"""

TELLING = "Refund only after explicit confirmation."
"""What the scripted model listens to, and nothing else."""


def prompt(*, changed: bool, telling: int, count: int = 40) -> str:
    """Forty sentences; where they are changed, all of them are, and one of them tells."""
    sentences = []
    for number in range(count):
        if not changed:
            sentences.append(f"Rule {number} is about case {number}.")
        elif number == telling:
            sentences.append(TELLING)
        else:
            sentences.append(f"Rule {number} now covers case {number} and the next.")
    return " ".join(sentences)


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


@pytest.mark.parametrize("telling", sample([23, 0, 39], every=3))
def test_the_sentence_that_turns_the_outcome_is_found_among_forty(bench: Bench, telling: int) -> None:
    good = bench.record("good", prompt(changed=False, telling=telling))
    bad = bench.record("bad", prompt(changed=True, telling=telling))
    finding = bench.finding(good, bad)
    assert finding.step == (3, 3) and finding.causes[0].kind is CauseKind.SYSTEM
    trials: list[ProbeResult] = []
    proof = bench.prove(finding, bad, on_trial=trials.append)
    assert [trial.kind for trial in proof.proven] == [CauseKind.SYSTEM]
    assert proof.control.outcomes == (AnswerOutcome.BAD,)
    assert proof.smallest is not None and proof.smallest.complete and proof.smallest.of == 40
    (hunk,) = proof.smallest.sentences
    assert hunk.bad.strip() == TELLING and hunk.good.strip() == f"Rule {telling} is about case {telling}."
    assert proof.live_calls == len(trials)
    print(f"\nfound among 40 sentences with {proof.live_calls} live calls")
    assert proof.live_calls <= 15


def test_sentences_that_must_both_go_are_both_found(bench: Bench) -> None:
    good = bench.record("good", "Look the account up. Be brief. Refund what is due.")
    bad = bench.record("bad", "Ask for explicit confirmation. Be kind. Wait for explicit confirmation.")
    proof = bench.prove(bench.finding(good, bad), bad)
    assert proof.smallest is not None and proof.smallest.of == 3
    assert [hunk.bad.strip() for hunk in proof.smallest.sentences] == [
        "Ask for explicit confirmation.",
        "Wait for explicit confirmation.",
    ]


def test_a_sentence_that_was_reworded_is_narrowed_down_to_the_words(bench: Bench) -> None:
    good = bench.record("good", "Be kind. Look the account up, check the order, then refund what is due at once.")
    bad = bench.record(
        "bad", "Be nice. Look each account up, check the order, then ask for explicit confirmation at once."
    )
    proof = bench.prove(bench.finding(good, bad), bad)
    assert proof.smallest is not None and proof.smallest.of == 2
    assert len(proof.smallest.sentences) == 1
    assert [(hunk.good, hunk.bad) for hunk in proof.smallest.words] == [
        (" refund what is due", " ask for explicit confirmation")
    ]


def test_calls_that_run_out_leave_what_is_known(bench: Bench) -> None:
    good = bench.record("good", prompt(changed=False, telling=5))
    bad = bench.record("bad", prompt(changed=True, telling=5))
    proof = bench.prove(bench.finding(good, bad), bad, most_calls=4)
    assert proof.live_calls == 4 and proof.stopped is not None
    assert proof.smallest is not None and not proof.smallest.complete
    assert any(TELLING in hunk.bad for hunk in proof.smallest.sentences)
    assert [trial.kind for trial in proof.proven] == [CauseKind.SYSTEM]


def test_every_sample_is_counted(bench: Bench) -> None:
    good = bench.record("good", "Look the account up, then refund what is due.")
    bad = bench.record("bad", "Look the account up, then refund after explicit confirmation.")
    proof = bench.prove(bench.finding(good, bad), bad, samples=3)
    assert proof.control.outcomes == (AnswerOutcome.BAD,) * 3
    assert proof.trials[0].outcomes == (AnswerOutcome.GOOD,) * 3
    assert len(set(proof.trials[0].sessions)) == 3


def test_runs_that_do_not_part_leave_nothing_to_prove(bench: Bench) -> None:
    one = bench.record("one", "Look the account up, then refund what is due.")
    other = bench.record("other", "Look the account up, then refund what is due.")
    finding = bench.finding(one, other)
    with pytest.raises(NothingToProve):
        bench.prove(finding, other)


def test_a_provider_that_is_gone_makes_no_control(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.record("good", prompt(changed=False, telling=2, count=4))
    bench.record("bad", prompt(changed=True, telling=2, count=4))
    bench.stop_provider()
    capfd.readouterr()
    assert run(["bisect", "good", "bad", "--prove", "--home", str(bench.home)]) == ExitCode.USAGE
    shown, talk = capfd.readouterr()
    assert "The control could not be completed: the provider did not answer (" in talk
    assert "like the bad run" not in shown + talk, "nobody answered"


def test_the_command_says_proven_with_its_counts(
    bench: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = bench.record("good", prompt(changed=False, telling=7))
    bad = bench.record("bad", prompt(changed=True, telling=7))
    capfd.readouterr()
    monkeypatch.setenv("COLUMNS", "100")
    assert run(["bisect", "good", "bad", "--prove", "--home", str(bench.home)]) == ExitCode.DIFFERENT
    shown, talk = capfd.readouterr()
    verdict = shown.partition("✓ Proven")[2]
    assert verdict.startswith(": the system prompt\n")
    assert "Control    asked again unchanged: like the bad run" in verdict
    assert "Put back   the system prompt: like the good run" in verdict
    assert "Smallest   1 of 40 changed sentences turns it:" in verdict
    assert TELLING in verdict
    assert "live calls, " in verdict
    assert talk.count("put back:") == int(re.search(r"(\d+) live calls", verdict)[1])  # type: ignore[index]
    assert run(["bisect", good, bad, "--prove", "--json", "--home", str(bench.home)]) == ExitCode.DIFFERENT
    view = json.loads(capfd.readouterr().out)
    assert [trial["cause"] for trial in view["proof"]["proven"]] == ["system"]
    assert view["proof"]["smallest"]["of"] == 40 and view["proof"]["live_calls"] <= 15
