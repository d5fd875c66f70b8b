"""What tests of forks share: a talking agent, and a gateway that forks whatever the test sends it."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from support.answers import openai_chat
from support.cli import KEYS, Result
from support.lab import Gate, Lab
from support.script import Answer, Request

SYSTEM = "You are a clerk."

TALKS = """
import json, os, sys, urllib.error, urllib.request
messages = [{"role": "system", "content": "You are a clerk."}]
for text in sys.argv[1:]:
    messages.append({"role": "user", "content": text})
    body = {"model": "gpt-4o-mini", "temperature": 0.7, "messages": messages}
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            said = json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"]["message"], flush=True)
        sys.exit(3)
    messages.append({"role": "assistant", "content": said})
    print(said, flush=True)
"""
"""Asks each of its arguments in one conversation, prints what comes, and gives up at the first error."""


def talks(*questions: str) -> list[str]:
    return [sys.executable, "-c", TALKS, *questions]


def numbered(request: Request) -> Answer:
    """Answers carry the number of the call, so that one that went live shows."""
    return openai_chat(request, f"answer {request.hit} to {request.json()['messages'][-1]['content']}")


def fork(lab: Lab, step: str, *args: str, env: Mapping[str, str] | None = None, **more: Any) -> Result:
    """``rewind fork STEP`` with the way to the provider and dummy keys."""
    return lab.rewind("fork", step, *lab.upstream, *args, env=KEYS if env is None else env, **more)


def forked(result: Result) -> str:
    """The new session, as the last lines name it."""
    found = re.search(r" · → ([0-9a-f]{8})$", result.talk, re.MULTILINE)
    assert found, result.talk
    return found[1]


def bodies(lab: Lab, since: int = 0) -> list[Any]:
    """What the provider was asked, from that call on."""
    return [request.json() for request in lab.provider.requests[since:]]


@contextmanager
def forking(lab: Lab, step: str, *options: str) -> Iterator[Gate]:
    """A gateway that forks: the recorded agent only holds the door, and the test asks."""
    with lab._gate(["fork", step, *lab.upstream, *options], dict(KEYS)) as gate:
        yield gate


def sets(edits: Sequence[str]) -> list[str]:
    return [word for edit in edits for word in ("--set", edit)]


def told(result: Result) -> dict[str, Any]:
    """The first run that ``fork --json`` tells of."""
    value = json.loads(result.stdout)
    assert value["schema"] == "rewind/fork@1"
    run: dict[str, Any] = value["runs"][0]
    return run
