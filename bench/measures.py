"""What is measured: each measure runs one contender once and gives figures by name."""

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from bench import machine
from bench.contenders import Contender
from bench.setup import Setup

TAPE = "tape"
"""The name under which the calls of all replays were recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of everything; the quick one shows the order of things, not more."""

    rounds: int
    starts: int
    """Starts per round; the others run once."""
    calls: int
    """Over many connections, and on the tape."""
    single_calls: int
    streams: int
    slow_streams: int
    turns: int
    large_calls: int
    connections: int = 16
    many_connections: int = 64
    think_ms: int = 20


FULL = Scale(rounds=5, starts=2, calls=3000, single_calls=300, streams=30, slow_streams=5, turns=200, large_calls=12)
QUICK = Scale(rounds=2, starts=2, calls=600, single_calls=100, streams=10, slow_streams=3, turns=200, large_calls=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table."""

    key: str
    title: str
    unit: Literal["ms", "s", "calls/s", "bytes"]
    more_is_better: bool = False
    added: bool = False
    """Shown less what it takes without a proxy."""


FIGURES = (
    Figure(key="help", title="--help (direct: python -c pass)", unit="ms"),
    Figure(key="record_true", title="record `true`", unit="ms"),
    Figure(key="record_true_cpu", title="record `true`, CPU", unit="ms"),
    Figure(key="record_one_call", title="record a client that makes 1 call", unit="ms"),
    Figure(key="replay_one_call", title="replay it", unit="ms"),
    Figure(key="replay_rate", title="replay, 16 connections", unit="calls/s", more_is_better=True),
    Figure(key="replay_rate_64", title="replay, 64 connections", unit="calls/s", more_is_better=True),
    Figure(key="replay_cpu", title="replay, CPU per 1,000 calls", unit="s"),
    Figure(key="replay_call", title="replay, 1 connection, per call", unit="ms"),
    Figure(key="replay_fresh", title="replay, new connection per call", unit="ms"),
    Figure(key="record_rate", title="record, 16 connections", unit="calls/s", more_is_better=True),
    Figure(key="record_rate_64", title="record, 64 connections", unit="calls/s", more_is_better=True),
    Figure(key="record_cpu", title="record, CPU per 1,000 calls, until the recorder ends", unit="s"),
    Figure(key="record_call", title="record, 4 KB, per call", unit="ms", added=True),
    Figure(key="record_64k", title="record, 64 KB, per call", unit="ms", added=True),
    Figure(key="record_1m", title="record, 1 MB, same beginning as before", unit="ms", added=True),
    Figure(key="record_1m_fresh", title="record, 1 MB, all new", unit="ms", added=True),
    Figure(key="record_thinking", title="record, 4 KB, provider thinks 20 ms", unit="ms", added=True),
    Figure(key="record_turns", title="record, 200 growing turns, mean per call", unit="ms", added=True),
    Figure(key="first_event", title="record, first of 40 events", unit="ms", added=True),
    Figure(key="event_transit", title="record, 40 events, each on its way", unit="ms", added=True),
    Figure(key="first_slow_event", title="record, first event, 50 ms gaps", unit="ms", added=True),
    Figure(key="slow_spread", title="record, first to last event, 50 ms gaps", unit="ms"),
    Figure(key="stored_call", title="disk per call of 4 kB + 1.6 kB", unit="bytes"),
    Figure(key="stored_turn", title="disk per step, 200 turns of 2 kB", unit="bytes"),
)

Measure = Callable[[Contender], Mapping[str, float]]


def once(scale: Scale) -> list[Measure]:
    """Done a single time: sizes do not vary, and the replays need their tapes."""

    def tape(contender: Contender) -> Mapping[str, float]:
        contender.record(TAPE, *_calls(scale))
        return {"stored_call": contender.stored(TAPE) / scale.calls}

    def conversation(contender: Contender) -> Mapping[str, float]:
        contender.record("conversation", "turns", "--calls", str(scale.turns))
        return {"stored_turn": contender.stored("conversation") / scale.turns}

    def one_call(contender: Contender) -> Mapping[str, float]:
        contender.record("one-call", "calls")
        return {}

    return [conversation, tape, one_call]


def repeated(scale: Scale, setup: Setup, only: str = "") -> list[Measure]:
    """Done in every round; ``only`` those measures of whose name this is a part."""

    def show_help(contender: Contender) -> Mapping[str, float]:
        return {"help": 1000 * timed(contender.help_command(), setup)}

    def start(contender: Contender) -> Mapping[str, float]:
        before = machine.children_cpu_seconds()
        seconds = contender.record_true()
        return {"record_true": 1000 * seconds, "record_true_cpu": 1000 * (machine.children_cpu_seconds() - before)}

    def record_one_call(contender: Contender) -> Mapping[str, float]:
        return {"record_one_call": 1000 * contender.record("one-call", "calls", pinned=False).wall}

    def replay_one_call(contender: Contender) -> Mapping[str, float]:
        return {"replay_one_call": 1000 * contender.replay("one-call", "calls", pinned=False).wall}

    def replay_many(contender: Contender) -> Mapping[str, float]:
        figures = contender.replay(TAPE, *_calls(scale)).figures
        return {"replay_rate": figures["rate"], **_cpu("replay_cpu", figures)}

    def replay_very_many(contender: Contender) -> Mapping[str, float]:
        return {"replay_rate_64": contender.replay(TAPE, *_calls(scale, scale.many_connections)).figures["rate"]}

    def replay_one(contender: Contender) -> Mapping[str, float]:
        figures = contender.replay(TAPE, "calls", "--calls", str(scale.single_calls)).figures
        return {"replay_call": figures["call_ms"]}

    def replay_fresh(contender: Contender) -> Mapping[str, float]:
        figures = contender.replay(TAPE, "calls", "--calls", str(scale.single_calls // 4), "--fresh").figures
        return {"replay_fresh": figures["call_ms"]}

    def record_many(contender: Contender) -> Mapping[str, float]:
        before = machine.children_cpu_seconds()
        figures = contender.record("many", *_calls(scale)).figures
        cpu = machine.children_cpu_seconds() - before - figures["client_cpu"]
        return {"record_rate": figures["rate"], "record_cpu": cpu / scale.calls * 1000}

    def record_very_many(contender: Contender) -> Mapping[str, float]:
        return {"record_rate_64": contender.record("many", *_calls(scale, scale.many_connections)).figures["rate"]}

    def record_large(contender: Contender) -> Mapping[str, float]:
        def call_ms(scenario: str, size: int, calls: int) -> float:
            given = ("--calls", str(calls), "--size", str(size))
            return contender.record("large", scenario, *given).figures["call_ms"]

        return {
            "record_64k": call_ms("large-fresh", 64 * 1024, 3 * scale.large_calls),
            "record_1m": call_ms("large", 1024 * 1024, scale.large_calls),
            "record_1m_fresh": call_ms("large-fresh", 1024 * 1024, scale.large_calls),
        }

    def record_thinking(contender: Contender) -> Mapping[str, float]:
        given = ("--calls", str(scale.single_calls // 5), "--gap", str(scale.think_ms))
        return {"record_thinking": contender.record("thoughtful", "thoughtful", *given).figures["call_ms"]}

    def record_turns(contender: Contender) -> Mapping[str, float]:
        return {"record_turns": contender.record("turns", "turns", "--calls", str(scale.turns)).figures["mean_ms"]}

    def record_one(contender: Contender) -> Mapping[str, float]:
        figures = contender.record("one", "calls", "--calls", str(scale.single_calls)).figures
        return {"record_call": figures["call_ms"]}

    def streams(contender: Contender) -> Mapping[str, float]:
        figures = contender.record("streams", "streams", "--calls", str(scale.streams)).figures
        return {"first_event": figures["first_event_ms"], "event_transit": figures["event_transit_ms"]}

    def slow_streams(contender: Contender) -> Mapping[str, float]:
        options = ("--calls", str(scale.slow_streams), "--gap", "50")
        figures = contender.record("slow", "streams", *options).figures
        return {"first_slow_event": figures["first_event_ms"], "slow_spread": figures["spread_ms"]}

    starts = [show_help, start, record_one_call, replay_one_call] * scale.starts
    replays = [replay_many, replay_very_many, replay_one, replay_fresh]
    rates = [record_many, record_very_many]
    records = [record_one, record_large, record_thinking, record_turns, streams, slow_streams]
    return [measure for measure in (*starts, *replays, *rates, *records) if only in measure.__name__]


def timed(command: list[str], setup: Setup) -> float:
    """Seconds from start to end, whatever the exit code: mitmdump's help ends with 1."""
    began = time.perf_counter()
    env = setup.environment()
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return time.perf_counter() - began


def _calls(scale: Scale, connections: int | None = None) -> tuple[str, ...]:
    return ("calls", "--calls", str(scale.calls), "--connections", str(connections or scale.connections))


def _cpu(key: str, figures: Mapping[str, float]) -> Mapping[str, float]:
    """Not every system tells."""
    return {key: figures["cpu_per_1000"]} if "cpu_per_1000" in figures else {}
