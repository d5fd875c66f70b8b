"""``python -m bench``: measure, and print a table."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bench import goals, machine, measures, report, rounds
from bench.contenders import Contender
from bench.contenders.direct import Direct
from bench.contenders.mitm import Mitmproxy
from bench.contenders.pass_through import PassThrough
from bench.contenders.rewind import Rewind
from bench.setup import Failed, Setup, surroundings

CONTENDERS: dict[str, Callable[[Setup], Contender]] = {
    "direct": Direct,
    "rewind": lambda setup: Rewind(setup, uvloop=False),
    "rewind+uvloop": lambda setup: Rewind(setup, uvloop=True),
    "mitmproxy": Mitmproxy,
    "limit": lambda setup: PassThrough(setup, stores=False),
    "limit+store": lambda setup: PassThrough(setup, stores=True),
}

RECORDERS = ("rewind", "mitmproxy")
"""Those on the wire that keep what they saw and replay it: Rewind is ranked among them."""


def main() -> int:
    options = parse()
    scale = measures.QUICK if options.quick else measures.FULL
    names = [name for name in CONTENDERS if name not in options.without]
    contenders_of = dict(CONTENDERS)
    if options.before:
        contenders_of["before"] = lambda setup: Rewind(setup, uvloop=False, before=options.before.absolute())
        names.append("before")
    load = machine.load()
    try:
        with surroundings(pinned=not options.unpinned) as setup:
            contenders = [contenders_of[name](setup) for name in names]
            repeated = measures.repeated(scale, setup, options.only)
            if not repeated:
                raise Failed(f"no measure has {options.only!r} in its name")
            count = options.rounds or scale.rounds
            results = rounds.run(contenders, measures.once(scale), repeated, count)
    except Failed as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(report.as_json(results, names, load_before=load), indent=2))
        return 0
    print(f"{machine.description()}; load {load:.1f} before, {machine.load():.1f} after; medians of {count} rounds")
    print()
    print("\n".join(report.page(results, names, RECORDERS)) if options.markdown else report.table(results, names))
    print()
    print("\n".join(goals.standing(results, names)))
    if options.before:
        print()
        print(report.beside_before(results))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Rewind beside no proxy and beside mitmproxy.")
    parser.add_argument("--quick", action="store_true", help="about three minutes; shows the order of things")
    parser.add_argument("--json", action="store_true", help="every round's figures, for programs")
    parser.add_argument("--markdown", action="store_true", help="the table as a document has it, with spread and rank")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often everything is measured")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=CONTENDERS,
        metavar="NAME",
        help=f"leave out: {', '.join(CONTENDERS)}",
    )
    parser.add_argument(
        "--before", type=Path, metavar="FILE", help="the `rewind` of another checkout, measured in turns with this one"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="measures with this in their names: replay, record_one, start, ..."
    )
    parser.add_argument("--unpinned", action="store_true", help="let the system choose the cores")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
