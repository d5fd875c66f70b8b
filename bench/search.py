"""``python -m bench.search``: how long a search takes over many steps, and how fast sessions become searchable.

The texts of the many steps are made by DuckDB itself, in the tables that ``rewind search`` reads; recording a million
steps for it would take an hour and show nothing else. How fast recorded sessions get there is measured apart.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import machine
from rewind.model.http import RequestHead, ResponseHead
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, StepKind, StepRequest, StepResponse
from rewind.store.derived import DerivedDatabase
from rewind.store.files import folder_name, prepare_home
from rewind.store.journal.writer import SessionWriter
from rewind.store.search.fill import TABLES
from rewind.store.search.index import VERSION, SearchIndex, SearchQuery

STEPS_PER_SESSION = 20
BEGAN = 1_790_000_000.0
RARE, ABSENT = "quokkaberry", "zzqxvk"
PLANTED = 5
"""How many steps, spread over all sessions, have the rare word."""
PATIENCE = 600.0

WORDS = """
CREATE TEMP TABLE vocabulary AS SELECT list(word ORDER BY number) AS words FROM (
    SELECT number, CASE WHEN number % 9 = 0 THEN upper(bare[1]) || bare[2:] ELSE bare END
        || CASE WHEN number % 13 = 0 THEN ',' WHEN number % 17 = 0 THEN '.' ELSE '' END AS word
    FROM (SELECT number, translate(md5(number::VARCHAR), '0123456789', 'etaoinshrl')[:2 + number % 8] AS bare
          FROM range(50000) AS all_numbers(number)))
"""
TEXTS = """
INSERT INTO texts SELECT
    printf('%s-%08x', strftime(make_timestamp((1e6 * ($began + 60 * (nth // $each)))::BIGINT), '%Y%m%dT%H%M%S.%gZ'),
           nth // $each),
    $began + 60 * (nth // $each), 1 + nth % $each, $began + 60 * (nth // $each) + nth % $each,
    ['user', 'assistant', 'tool_use', 'tool_result'][1 + nth % 4], false,
    array_to_string(list_transform(
        range(least(9000, greatest(4, exp(4.6 + 0.9 * sqrt(-2 * ln(1 - random())) * cos(6.283 * random()))::INT))),
        lambda place: words[1 + least(49999, pow(50000, random() + 0 * place)::INT)]), ' ')
    || CASE WHEN nth % $every = $every // 2 THEN ' ' || $rare ELSE '' END
FROM range($first, $last) AS all_steps(nth), vocabulary
"""
SESSIONS = """
INSERT INTO sessions
SELECT folder, any_value(started), 1, max(step), true, false, count(*), 0 FROM texts GROUP BY folder ORDER BY folder
"""

Figures = dict[str, list[float]]


def main() -> int:
    options = parse()
    load = machine.load()
    figures: Figures = {}
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        home = Path(folder) / "many"
        figures["texts, MB"] = [make_index(home, options.steps)]
        index = home / "search.duckdb"
        figures["search.duckdb, MB"] = [index.stat().st_size / 1e6]
        common = common_word(home)
        for name, word in (("a common word", common), ("a rare word", RARE), ("an absent word", ABSENT)):
            figures[f"{name}, s"] = timed(options.rounds, searching(home, word))
        figures["list --text, common word, s"] = timed(options.rounds, listing(home, common))
        for name, word in (("a common word", common), ("an absent word", ABSENT)):
            figures[f"the command, {name}, s"] = timed(options.rounds, command(home, word))
            figures[f"the command, {name}, file not in memory, s"] = timed(
                options.rounds, command(home, word), before=lambda: forget(index)
            )
        for turns, sessions in ((5, 400), (STEPS_PER_SESSION, 100), (200, 3)):
            store = Path(folder) / f"turns-{turns}"
            record(store, sessions, turns)
            (took,) = timed(1, SearchIndex(store).catch_up)
            figures[f"made searchable, conversations of {turns} turns, steps/s"] = [sessions * turns / took]
    if options.json:
        print(json.dumps({"steps": options.steps, "load_before": load, "figures": figures}, indent=2))
        return 0
    print(f"{machine.description()}; {options.steps:,} steps; load {load:.1f} before, {machine.load():.1f} after")
    print()
    print("| | median | slowest |\n|---|---|---|")
    for name, values in figures.items():
        print(f"| {name} | {statistics.median(values):,.2f} | {max(values):,.2f} |")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description="rewind search over many steps.")
    parser.add_argument("--steps", type=int, default=1_000_000, metavar="N", help="how many (1,000,000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often each is measured (5)")
    parser.add_argument("--json", action="store_true", help="every round's figures, for programs")
    return parser.parse_args()


def timed(rounds: int, work: Callable[[], object], *, before: Callable[[], object] = lambda: None) -> list[float]:
    """Seconds of each round."""
    taken = []
    for _ in range(rounds):
        before()
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return taken


# ── a million steps ──────────────────────────────────────────────────────────────────────────────────────────


def make_index(home: Path, steps: int) -> float:
    """A store whose sessions are all in the index already; how many megabytes of text they have."""
    sessions = prepare_home(home)

    def fill(db: Any) -> tuple[float, list[str]]:
        db.execute("SELECT setseed(0.5)")
        db.execute(WORDS)
        for first in range(0, steps, 50_000):
            db.execute(
                TEXTS,
                {
                    "began": BEGAN,
                    "each": STEPS_PER_SESSION,
                    "every": max(2, steps // PLANTED),
                    "rare": RARE,
                    "first": first,
                    "last": min(steps, first + 50_000),
                },
            )
        db.execute(SESSIONS)
        (size,) = db.execute("SELECT sum(strlen(text)) / 1e6 FROM texts").fetchone()
        return float(size), [name for (name,) in db.execute("SELECT folder FROM sessions").fetchall()]

    database = DerivedDatabase(home, "search", version=VERSION, tables=TABLES)
    nothing: tuple[float, list[str]] = 0.0, []
    size, folders = database.ask(fill, lambda _db, filled, _empty: filled, nothing=nothing)
    for name in folders:  # one byte of a journal each: a session that is gone would be forgotten
        (sessions / name).mkdir()
        (sessions / name / "journal.jsonl").write_bytes(b"\n")
    return size


def common_word(home: Path) -> str:
    """A word that most texts have."""
    hits = SearchIndex(home).search(SearchQuery(texts=(" ",), limit=1)).hits
    return max(hits[0].snippet.split(), key=hits[0].snippet.split().count).strip(".,").lower()


def searching(home: Path, word: str) -> Callable[[], object]:
    return lambda: SearchIndex(home).search(SearchQuery(texts=(word,), limit=20))


def listing(home: Path, word: str) -> Callable[[], object]:
    return lambda: SearchIndex(home).sessions_with(word)


def command(home: Path, word: str) -> Callable[[], object]:
    arguments = [sys.executable, "-m", "rewind", "--home", str(home), "search", word]
    return lambda: subprocess.run(arguments, check=True, capture_output=True, timeout=PATIENCE)


def forget(file: Path) -> None:
    """Let the system drop what it holds of the file in memory, where it can be asked to."""
    if hasattr(os, "posix_fadvise"):
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


# ── recorded sessions ────────────────────────────────────────────────────────────────────────────────────────


def record(home: Path, sessions: int, turns: int) -> None:
    """Sessions of one conversation each: 2 kB asked and 1 kB answered a turn, all of it repeated in the next."""
    source = random.Random(turns)
    head = RequestHead(
        method="POST", scheme="https", host="api.anthropic.com", port=443, target="/v1/messages", headers=()
    )
    answer = ResponseHead(status=200, reason="OK", headers=(("content-type", "application/json"),))
    for nth in range(sessions):
        start = SessionStart(
            id=SessionId(f"{nth:08x}"),
            name=None,
            command=("agent",),
            cwd="/",
            started=BEGAN + nth,
            rewind_version="bench",
        )
        writer = SessionWriter.create(home, start)
        assert writer.folder.name == folder_name(start), "no two of them begin at once"
        messages: list[dict[str, str]] = []
        for index in range(1, turns + 1):
            messages.append({"role": "user", "content": _words(source, 2000)})
            said = _words(source, 1000)
            asked = json.dumps({"model": "claude-sonnet-4-6", "messages": messages}).encode()
            answered = json.dumps({"type": "message", "content": [{"type": "text", "text": said}]}).encode()
            request = StepRequest(
                index=index,
                ts=start.started + index,
                kind=StepKind.LLM_CALL,
                provider="anthropic",
                match_key=MatchKey("rw1:" + "0" * 32),
                head=head,
            )
            writer.request(request, asked)
            writer.response(index, StepResponse(ending=Ending.COMPLETE, head=answer, ms=1.0), answered)
            messages.append({"role": "assistant", "content": said})
        writer.end(ended=start.started + turns, exit_code=0, redactions=0, remarks=())


def _words(source: random.Random, size: int) -> str:
    return " ".join(f"{source.getrandbits(20):x}" for _ in range(size // 5))[:size]


if __name__ == "__main__":
    sys.exit(main())
