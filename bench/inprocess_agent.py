"""A small agent on the OpenAI SDK, inside one recorder that works in its process; run by ``bench.inprocess``.

``python inprocess_agent.py RECORDER MODE FILE CALLS TURNS``: makes CALLS calls of 4 kB, and TURNS calls of a growing
conversation, and prints the median milliseconds of a call as JSON. It runs in each recorder's own environment, so it
imports nothing of ours but what it measures. The clock is one that no recorder replays.
"""

import contextlib
import importlib
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

CLOCK = time.CLOCK_MONOTONIC


def detour() -> None:
    """Names lead to the provider on this machine."""
    port = int(os.environ["BENCH_PORT"])
    real = socket.getaddrinfo
    socket.getaddrinfo = lambda _host, _port, *rest, **more: real("127.0.0.1", port, *rest, **more)


def recorder(name: str, mode: str, file: str) -> Any:
    """What records or replays within this process; nothing, for what is outside of it."""
    recording = mode == "record"
    if name == "vcrpy":
        recorder = module("vcr").VCR(match_on=["method", "uri", "body"], filter_headers=["authorization"])
        return recorder.use_cassette(file, record_mode="all" if recording else "none")
    if name == "cassetter":
        how = {"record_mode": "all" if recording else "none", "match_on": ["method", "uri", "body"]}
        return module("cassetter").use_cassette(file, **how)
    if name == "agent-rewind":  # its import name is ours
        agent_rewind = module("rewind")
        agent_rewind.auto_patch()
        return (agent_rewind.record if recording else agent_rewind.replay)(file)
    if name == "rewind":
        provider = f"api.openai.com:443:127.0.0.1:{os.environ['BENCH_PORT']}"
        trusted = os.environ["BENCH_CA"]
        return module("rewind").session("bench", mode=mode, home=file, connect_to=[provider], upstream_ca=trusted)
    return contextlib.nullcontext()


def module(name: str) -> Any:
    """Imported only where it is installed."""
    return importlib.import_module(name)


def timed(ask: Callable[[list[dict[str, str]]], None], talks: list[list[dict[str, str]]]) -> list[float]:
    taken = []
    for messages in talks:
        began = time.clock_gettime_ns(CLOCK)
        ask(messages)
        taken.append((time.clock_gettime_ns(CLOCK) - began) / 1e6)
    return taken


def main() -> None:
    name, mode, file, calls, turns = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    from openai import OpenAI

    if name not in ("rewind", "rewind on the wire"):
        detour()
    single = [
        [{"role": "system", "content": "You are a support agent. " * 130}, {"role": "user", "content": f"call-{n:08d}"}]
        for n in range(calls)
    ]
    grown = single[0]
    growing = []
    for turn in range(turns):
        grown = [*grown, {"role": "user", "content": f"{'and then ' * 40} call-{turn:08d}"}]
        growing.append(grown)
        grown = [*grown, {"role": "assistant", "content": f"{turn} " + "as was said before " * 80}]
    with recorder(name, mode, file):
        client = OpenAI(api_key="sk-bench-0123456789abcdef", base_url="https://api.openai.com/v1", max_retries=0)

        def ask(messages: list[dict[str, str]]) -> None:
            client.chat.completions.create(model="gpt-5-mini", messages=messages, temperature=0)  # type: ignore[arg-type]

        taken = timed(ask, single)
        grown_taken = timed(ask, growing)
    figures = {"call": statistics.median(taken[1:] or taken)}
    if grown_taken:
        figures["turn"] = statistics.fmean(grown_taken)
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
