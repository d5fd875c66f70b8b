"""Run the agents that are installed and print how their replays went.

``PYTHONPATH=tests python -m support.real_agents [NAME…] [--keep FOLDER]``
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from support.real_agents.table import AGENTS
from support.real_agents.trial import HEADLINE, missing_install, run_trial
from support.trust import Trust


def main() -> int:
    parser = argparse.ArgumentParser(description="Record and replay real agents, and print a table.")
    parser.add_argument("names", nargs="*", help="which agents (default: all)")
    parser.add_argument("--keep", type=Path, help="leave stores and outputs in this folder")
    asked = parser.parse_args()
    failed = 0
    print(HEADLINE)
    with tempfile.TemporaryDirectory() as scratch:
        trust = Trust.create(Path(scratch))
        for agent in AGENTS:
            if asked.names and agent.name not in asked.names:
                continue
            if reason := missing_install(agent):
                print(f"{agent.name}: {reason}", file=sys.stderr)
                failed += 1
                continue
            place = (asked.keep or Path(scratch)) / agent.name.replace(" ", "-")
            shutil.rmtree(place, ignore_errors=True)
            trial = run_trial(agent, place, trust)
            print(trial.row, flush=True)
            for fault in trial.faults:
                print(f"    {fault}", file=sys.stderr)
            failed += bool(trial.faults)
    return 1 if failed else 0


sys.exit(main())
