"""Runs several agents in one process, one after the other. Arguments: their files."""

import runpy
import sys

for agent in sys.argv[1:]:
    sys.argv = [agent]
    runpy.run_path(agent, run_name="__main__")
