"""``SmallModel``: the model as a process of its own, asked for words or for a value of a JSON schema."""

import http.client
import itertools
import json
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from support.real_agents.table import INSTALLED

INSTALL = INSTALLED / "small-model"
PATIENCE = 60.0
"""Seconds that one answer may take, on a machine that is busy with other tests."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the model said."""

    text: str
    cut: bool
    """True if the limit of tokens ended it."""


def missing_small_model() -> str | None:
    """Why there is no model here; None when there is one."""
    if (INSTALL / ".ready").exists():
        return None
    return "the small model is not installed: make .agents/small-model/.ready"


class SmallModel:
    """A running model, until it is left.

    Without a seed every answer is sampled anew. With one the n-th answer is the same in every run, and still another
    one than the answer before it.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        self.seed = seed
        self._asked = itertools.count()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._address = ""

    def __enter__(self) -> Self:
        program = Path(__file__).with_name("serve.py")
        command = [str(INSTALL / "bin" / "python"), "-I", str(program)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._address = urlsplit(self._process.stdout.readline().strip()).netloc
        assert self._address, f"the small model did not start: exit {self._process.wait(PATIENCE)}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def say(
        self,
        messages: str | Iterable[Mapping[str, str]],
        *,
        system: str = "",
        schema: Mapping[str, Any] | None = None,
        temperature: float = 0.8,
        max_tokens: int = 120,
    ) -> Said:
        """One answer to a question, or to messages with ``role`` and ``content``; with a schema it is JSON of it."""
        turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        asked: dict[str, Any] = {
            "messages": [*([{"role": "system", "content": system}] if system else []), *turns],
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        if schema is not None:
            asked["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        with self._lock:  # one at a time: the order of answers is the order of seeds
            if self.seed is not None:
                # What is cached changes how the prompt is computed, and with it the last digits of a probability.
                asked |= {"seed": self.seed + next(self._asked), "cache_prompt": False}
            answer = self._post("/v1/chat/completions", asked)
        choice = answer["choices"][0]
        return Said(choice["message"]["content"].strip(), choice["finish_reason"] == "length")

    def _post(self, path: str, value: object) -> Any:
        connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)
        try:
            connection.request("POST", path, json.dumps(value), {"content-type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, f"the small model refused ({answer.status}): {body.decode(errors='replace')}"
        return json.loads(body)
