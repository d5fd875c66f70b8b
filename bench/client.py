"""The agent of the benchmark: makes the calls it is told to and prints what they took, as one line of JSON.

It reaches the provider as any client would: by ``HTTPS_PROXY`` and ``SSL_CERT_FILE``, or straight with ``--direct``.
"""

import argparse
import json
import os
import statistics
import time

from bench import load, machine, traffic
from bench.dial import Route


def main() -> None:
    options = parse()
    if options.core is not None:
        machine.pin(0, options.core)
    route = Route.find(options.direct, options.ca)
    watched = os.getppid() if options.watch == "parent" else int(options.watch or 0)
    numbers = range(options.first, options.first + options.calls)
    requests = {
        "calls": lambda: [traffic.call(number) for number in numbers],
        "streams": lambda: [traffic.streamed_call(number, options.gap) for number in numbers],
        "turns": lambda: traffic.conversation(options.calls),
        "thoughtful": lambda: [traffic.thoughtful_call(number, options.gap) for number in numbers],
        "large": lambda: [traffic.large_call(number, options.size, fresh=False) for number in numbers],
        "large-fresh": lambda: [traffic.large_call(number, options.size, fresh=True) for number in numbers],
    }[options.scenario]()
    # A replay loads what answers while its agent starts; calls are counted from where all connections stand.
    opened = [route.open() for _ in range(options.connections)] if options.connections > 1 else []
    before, own_before, began = (
        machine.cpu_seconds(watched) if watched else None,
        time.process_time(),
        time.perf_counter(),
    )
    figures: dict[str, float | int]
    if options.scenario == "streams":
        firsts, transits, spreads = load.streams(route, requests)
        figures = {"first_event_ms": middle(firsts), "event_transit_ms": middle(transits), "spread_ms": middle(spreads)}
    elif options.connections == 1:
        took = load.one_by_one(route, requests, fresh=options.fresh)
        figures = {"call_ms": middle(took), "call_p99_ms": near_worst(took), "mean_ms": statistics.fmean(took) / 1e6}
    else:
        took, whole = load.all_at_once(opened, requests)
        figures = {"rate": len(took) / (whole / 1e9), "call_ms": middle(took), "call_p99_ms": near_worst(took)}
    figures["seconds"] = time.perf_counter() - began
    figures["client_cpu_per_1000"] = (time.process_time() - own_before) / len(requests) * 1000
    figures["client_cpu"] = time.process_time()
    after = machine.cpu_seconds(watched) if watched else None
    if before is not None and after is not None:
        figures["cpu_per_1000"] = (after - before) / len(requests) * 1000
    print(json.dumps(figures), flush=True)


def middle(nanoseconds: list[int]) -> float:
    return statistics.median(nanoseconds) / 1e6


def near_worst(nanoseconds: list[int]) -> float:
    return sorted(nanoseconds)[int(len(nanoseconds) * 0.99)] / 1e6


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__)
    parser.add_argument("scenario", choices=("calls", "streams", "turns", "thoughtful", "large", "large-fresh"))
    parser.add_argument("--calls", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first call")
    parser.add_argument("--connections", type=int, default=1, metavar="N")
    parser.add_argument("--fresh", action="store_true", help="a new connection for every call")
    parser.add_argument("--gap", type=int, default=0, metavar="MS", help="between events, or before an answer")
    parser.add_argument("--size", type=int, default=65536, metavar="BYTES", help="of a large request")
    parser.add_argument("--direct", metavar="ADDRESS:PORT", help="of the provider; without it, HTTPS_PROXY")
    parser.add_argument("--ca", metavar="FILE", help="to trust; without it, SSL_CERT_FILE")
    parser.add_argument("--core", type=int, metavar="N", help="stay on this core")
    parser.add_argument("--watch", metavar="PID", help="also tell the CPU time of this process, or of the 'parent'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
