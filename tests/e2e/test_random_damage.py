"""Whatever happens to the bytes of a store: no command hangs or stumbles, no answer is shown with other bytes, what is
lost is named, and the other sessions are untouched.

A failing trial names its number; ``REWIND_DAMAGE_SEED`` shifts all of them, ``REWIND_DAMAGE_TRIALS`` says how many.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from support.cli import Result, run_rewind
from support.damage_bench import DERIVED, DamageBench, Known, made
from support.effort import effort
from support.harm import HARMS, harmed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

TRIALS = effort(140, 2000, "REWIND_DAMAGE_TRIALS")
QUESTIONS = effort(1, 2)
PROCESSES = effort(2, 40)
SEED = int(os.environ.get("REWIND_DAMAGE_SEED", "0"))
DOCUMENTED = frozenset((0, 1, 2, 3, 4, 5, 6))
TARGETS = (
    ("talk", "journal.jsonl", "journal"),
    ("talk", "pack", "pack"),
    ("talk", "pack", "pack"),
    ("fork", "journal.jsonl", "journal"),
    ("fork", "pack", "pack"),
    ("killed", "part.2", "part"),
    ("killed", "journal.jsonl", "journal"),
    ("unread", "journal.part", "journal"),
    ("unread", "part.2", "part"),
    ("unread", "pack", "pack"),
    ("", "catalog.duckdb", "database"),
    ("", "search.duckdb", "database"),
    ("", "talk.rw", "cassette"),
    ("", "talk.rw.zst", "packed cassette"),
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamageBench]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("damage")
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
            patch.delenv(name, raising=False)
        patch.setenv("REWIND_HOME", str(folder / "store"))
        patch.setenv("NO_COLOR", "1")
        patch.chdir(folder)
        yield made(folder)


class Trial:
    """One accident, and every question about it."""

    def __init__(self, bench: DamageBench, number: int) -> None:
        self.bench = bench
        self.dice = Random(SEED * 1_000_003 + number)
        self.session, self.file, kind = TARGETS[number % len(TARGETS)]
        self.harm = HARMS[number // len(TARGETS) % len(HARMS)]
        self.path = bench.path(self.session, self.file) if self.session else self._beside()
        whole = bench.files[self.path]
        self.data = harmed(whole, self.dice, kind, self.harm)
        self.changed = self.data != whole
        self.cut_short: list[int] = []
        """Steps that are shown as interrupted, and were not."""
        self.name = f"trial {number} of seed {SEED}: {self.harm} in {self.file} of {self.session or 'the store'}"

    def _beside(self) -> Path:
        return (self.bench.home if self.file in DERIVED else self.bench.folder) / self.file

    def run(self) -> None:
        self.path.write_bytes(self.data)
        try:
            if self.file in DERIVED:
                self.check_derived()
            elif self.session:
                self.check_session(self.bench.sessions[self.session])
            else:
                self.check_cassette(self.bench.sessions["talk"])
        finally:
            self.bench.restore()

    def ask(self, *args: str) -> Result:
        done = self.bench.rewind(*args).sound()
        assert done.code in DOCUMENTED, f"{args} ended with {done.code}\n{done.talk}"
        return done

    # ── what is derived ──────────────────────────────────────────────────────────────────────────────────

    def check_derived(self) -> None:
        """It is made anew where it is doubted; no answer differs."""
        args = ["stats", "--json"] if self.file == "catalog.duckdb" else ["search", "word", "--json"]
        hurt = self.ask(*args)
        self.bench.restore()
        assert hurt.stdout == self.ask(*args).stdout, self.name

    # ── cassettes ────────────────────────────────────────────────────────────────────────────────────────

    def check_cassette(self, known: Known) -> None:
        """All of it or nothing: a file that was changed is not used."""
        file = str(self.path)
        for args in (["inspect", file, "--json"], ["verify", file]):
            assert (self.ask(*args).code != 0) == self.changed, self.name
        index = self.dice.choice(list(known.answers))
        done = self.ask("inspect", f"{file}:{index}", "--raw")
        assert done.stdout == (b"" if self.changed else known.answers[index]), self.name

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────

    def check_session(self, known: Known) -> None:
        done = self.ask("inspect", known.id, "--json")
        assert done.code in (0, 3), f"{self.name}: {done.talk}"
        overview = json.loads(done.stdout) if done.code == 0 else None
        shown = overview["session"]["status"] if overview else ""
        lost = self.lost(known)
        named = self.named(known, self.ask("verify", known.id, "--json")) if overview else True
        if lost and not named:
            # What is cut off at its end cannot be told from what a recorder leaves that is killed earlier.
            was = known.overview["session"]["status"]
            killed = shown == "interrupted" and (was != shown or self.harm == "cut")
            cut = [index for index in lost if index in self.cut_short]
            assert killed or cut == lost, f"{self.name}: answers {lost} are lost in silence"
        if self.harm == "flip":
            assert len(lost) <= 1, f"{self.name}: one bit cost the answers {lost}"
        # Frames of a pack in another order are still all there.
        if self.changed and overview != known.overview:
            assert named or shown == "interrupted", f"{self.name}: the damage is not named"
        for question in self.dice.sample(self.questions, QUESTIONS):
            question(known)

    def lost(self, known: Known) -> list[int]:
        """The steps whose answers are not given as they were; none is given with other bytes."""
        lost = []
        for index, answer in known.answers.items():
            done = self.ask("inspect", f"{known.id}:{index}", "--raw")
            assert done.code in (0, 3, 6), f"{self.name}: {done.talk}"
            assert answer.startswith(done.stdout), f"{self.name}: step {index} has other bytes"
            if done.stdout != answer:
                lost.append(index)
                if done.code == 0 and self.is_cut_short(known, index):
                    self.cut_short.append(index)
                else:
                    assert not done.stdout, f"{self.name}: step {index} is cut in silence"
        return lost

    def is_cut_short(self, known: Known, index: int) -> bool:
        shown = json.loads(self.ask("inspect", f"{known.id}:{index}", "--json").stdout)
        return bool(shown["step"]["ending"] == "interrupted")

    def is_interrupted(self, ref: str) -> bool:
        return bool(json.loads(self.ask("inspect", ref, "--json").stdout)["session"]["status"] == "interrupted")

    def named(self, known: Known, done: Result) -> bool:
        told = json.loads(done.stdout)
        assert {one["session"] for one in told["damage"]} <= {known.id}, f"{self.name}: {told}"
        assert (done.code == 6) == bool(told["damage"])
        return bool(told["damage"])

    # ── one question, asked of the damaged session or beside it ──────────────────────────────────────────

    @property
    def questions(self) -> list[Callable[[Known], object]]:
        calm = self.bench.sessions["calm"].id
        plain = (
            "diff {0} {1}",
            "diff {0} {1} --json",
            "bisect {1} {0}",
            "messages {0}",
            "inspect {0}",
            "inspect {0}:2",
            "inspect {0}:2 --context",
            "stats",
            "list --status ok",
            "export {0} --markdown -o -",
        )
        asked = [lambda known, words=words: self.ask(*words.format(known.id, calm).split()) for words in plain]
        return [*asked, self.requests, self.others, self.search, self.archive, self.cassette, self.replay, self.replay]

    def requests(self, known: Known) -> None:
        """Each request is given as it was, or not at all."""
        for index, request in known.requests.items():
            done = self.ask("inspect", f"{known.id}:{index}", "--raw", "--request")
            assert done.stdout == (request if done.code == 0 else b""), f"{self.name}: step {index} asked other bytes"

    def others(self, known: Known) -> None:
        """Of all other sessions the same is said as before."""
        self.named(known, self.ask("verify", "--json"))
        ids = {row["id"] for row in json.loads(self.ask("list", "--json").stdout)["sessions"]}
        for other in self.bench.sessions.values():
            if other is not known:
                assert other.id in ids, f"{self.name}: {other.id} is not listed"
                done = self.ask("inspect", other.id, "--json")
                assert json.loads(done.stdout) == other.overview, f"{self.name}: {other.id} differs"

    def search(self, known: Known) -> None:
        """An index made anew: of other sessions the same hits; of this one none that was not there."""
        (self.bench.home / "search.duckdb").unlink()
        hurt = json.loads(self.ask("search", "word", "--json").stdout)["hits"]
        self.bench.restore()
        whole = json.loads(self.ask("search", "word", "--json").stdout)["hits"]
        others = [[hit for hit in hits if hit["session"] != known.id] for hits in (hurt, whole)]
        assert others[0] == others[1], self.name
        texts = {hit["snippet"] for hit in whole if hit["session"] == known.id}
        for hit in hurt:
            if hit["session"] == known.id:
                assert any(text.startswith(hit["snippet"]) for text in texts), f"{self.name}: {hit}"

    def archive(self, known: Known) -> None:
        """What is written as HAR holds the right bytes."""
        done = self.ask("export", known.id, "--har", "-o", "-")
        texts = {answer.decode() for answer in known.answers.values()}
        for entry in json.loads(done.stdout)["log"]["entries"] if done.stdout else ():
            text = entry["response"]["content"].get("text", "")
            assert not text or any(whole.startswith(text) for whole in texts), self.name

    def cassette(self, known: Known) -> None:
        """What is written as a cassette holds the right bytes, and less of them only where it says so."""
        done = self.ask("export", known.id, "-o", "hurt.rw", "--force")
        if not Path("hurt.rw").exists():
            assert done.code != 0, self.name
            return
        for index, answer in known.answers.items():
            told = self.ask("inspect", f"hurt.rw:{index}", "--raw")
            assert answer.startswith(told.stdout), f"{self.name}: step {index} of the export has other bytes"
            if told.stdout != answer:
                assert done.code == 6 or self.is_interrupted("hurt.rw"), f"{self.name}: {done.talk}"
        Path("hurt.rw").unlink()

    def replay(self, known: Known) -> None:
        """Each answer is the recorded one, or refused; the exit code says so."""
        if not known.printed:
            return
        notes = self.bench.folder / "notes"
        os.environ["NOTES"] = str(notes)
        try:
            done = self.ask("replay", known.id, "--json")
        finally:
            del os.environ["NOTES"]
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        if lines != known.printed.splitlines():
            assert done.code in (1, 2, 4, 6), f"{self.name}: {done.talk}"
        for line in lines:
            whole = next(whole for whole in known.printed.splitlines() if whole[0] == line[0])
            refused = line.split()[1] in ("424", "closed")
            assert line == whole or refused, f"{self.name}: {line!r} was {whole!r}"


def test_random_damage(bench: DamageBench, record_property: Callable[[str, object], None]) -> None:
    for number in range(TRIALS):
        Trial(bench, number).run()
    seconds, command = bench.slowest
    record_property("shown", f"{TRIALS} damages; the slowest command took {seconds:.2f} s: {command}")


def test_real_processes_meet_damage(bench: DamageBench) -> None:
    for number in range(PROCESSES):
        trial = Trial(bench, 10_000 + number * 7)
        trial.path.write_bytes(trial.data)
        try:
            for args in (["verify"], ["search", "word"], ["list"]):
                done = run_rewind(args, bench.home, cwd=bench.folder, timeout=30)
                assert done.code in (0, 6), f"{trial.name}: {done.talk}"
        finally:
            bench.restore()
