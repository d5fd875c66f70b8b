"""The match keys of a growing conversation: what was said of a message is kept, and every key is as if made alone."""

import hashlib
import json
import random
from typing import Any

import pytest

from rewind.match import call
from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.wire import growing_json
from support.exchanges import request_of
from unit.store.making import words


def conversation(seed: int) -> list[dict[str, Any]]:
    """Turns with linked ids, of which some come back in other places, and with volatile fields."""
    source = random.Random(seed)
    messages: list[dict[str, Any]] = []
    bodies = []
    for turn in range(source.randrange(6, 20)):
        tool = f"toolu_{source.randrange(6)}_{seed}"
        use = {"type": "tool_use", "id": tool, "name": "look", "input": {"for": words(source, 400)}}
        result = {"type": "tool_result", "tool_use_id": tool, "content": words(source, 900) + " \U0001f600 é"}
        messages.append({"role": "user", "content": words(source, 300)})
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [result], "empty": {}})
        if source.random() < 0.2:
            messages[0] = {"role": "user", "content": words(source, 300)}
        if source.random() < 0.3:
            messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
        bodies.append(
            {"model": "m", "max_tokens": turn, "messages": list(messages), "metadata": {"user_id": f"{turn}"}}
        )
        bodies[-1] = json.loads(json.dumps(bodies[-1]))
    return bodies


def request(body: dict[str, Any], *, ascii_only: bool) -> HttpRequest:
    return request_of(
        json.dumps(body, ensure_ascii=ascii_only).encode(), target="/v1/messages", host="api.anthropic.com"
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_key_does_not_depend_on_what_came_before(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [
        request(body, ascii_only=bool(seed % 2))
        for pair in zip(conversation(seed), conversation(seed + 100), strict=False)
        for body in pair
    ]
    ignore = ("messages[*].empty",) if seed % 3 else ()
    monkeypatch.setattr(growing_json, "_STRIDE", 512)
    together = [understand(one, ignore=ignore) for one in requests]

    for one, found in zip(requests, together, strict=True):
        monkeypatch.setattr(growing_json, "_SMALL", len(one.body) + 1)  # read as a whole, into plain lists
        alone = understand(one, ignore=ignore)
        line = json.dumps(
            ["POST", "api.anthropic.com", "/v1/messages", [], "json", alone.canonical],
            sort_keys=True,
            separators=(",", ":"),
        )
        assert found.canonical == alone.canonical
        assert found.key == alone.key == "rw1:" + hashlib.sha256(line.encode()).hexdigest()[:32]


def test_what_a_request_repeats_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source, messages, written = random.Random(5), [], 0
    usual = call._written

    def counted(value: Any) -> str:
        nonlocal written
        text = usual(value)
        written += len(text)
        return text

    monkeypatch.setattr(call, "_written", counted)
    for _ in range(150):
        messages.append({"role": "user", "content": words(source, 700)})
        understand(request({"model": "m", "messages": messages}, ascii_only=True))

    assert written < 4 * len(json.dumps(messages))
