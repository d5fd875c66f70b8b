"""A cassette in a review: what git shows of a change is the change."""

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.store.cassette.write import write_cassette_file
from unit.store.taping import ended, exchange, taped_steps

BEFORE = "Never give a refund without the order number."
AFTER = "Never give a refund of more than 50 dollars without the order number."
SYSTEM = (
    "You are the support agent of a small bookshop. Answer in the language of the customer. {rule} "
    "Be kind, also to people who are not.\n\n"
    "Tools:\n"
    "- lookup_account finds a customer by name or address.\n"
    "- refund pays money back.\n"
)
TOOLS = [
    {"name": name, "description": f"{text} It takes a few seconds.", "input_schema": {"type": "object"}}
    for name, text in (("lookup_account", "Finds a customer."), ("refund", "Pays money back to a customer."))
]


def twelve_steps(rule: str, *, seed: int) -> bytes:
    """A run of twelve calls, each of which says everything again. The seed is what differs between two recordings."""
    dice = random.Random(seed)
    messages: list[dict[str, Any]] = []
    made = []
    for index in range(1, 13):
        messages.append({"role": "user", "content": f"Customer {index} asks where the order number {index} is."})
        asked = {"model": "claude-sonnet-4-6", "system": SYSTEM.format(rule=rule), "tools": TOOLS, "messages": messages}
        said = f"Order {index} is on its way, and should be there before Friday, if the weather stays as it is."
        answer = {
            "id": f"msg_{dice.getrandbits(64):016x}",
            "role": "assistant",
            "content": [{"type": "text", "text": said}],
        }
        messages.append({"role": "assistant", "content": answer["content"]})
        body = json.dumps(asked).encode()
        headers = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
        date = (("Content-Type", "application/json"), ("Date", f"second {dice.random()}"))
        step, blobs = exchange(index, body, json.dumps(answer).encode(), asked_headers=headers, headers=date)
        key = understand(HttpRequest(head=step.request.head, body=body)).key
        request = replace(step.request, match_key=key, ts=step.request.ts + dice.random())
        made.append((replace(step, request=request), blobs))
    return taped_steps(made, end=ended(ended=1794774200 + dice.random())).cassette()


def git_diff(folder: Path, before: bytes, after: bytes) -> list[str]:
    """The lines that git shows as gone or come."""
    for name, data in (("before.rw", before), ("after.rw", after)):
        write_cassette_file(folder / name, data)
    told = subprocess.run(
        ["git", "diff", "--no-index", "--no-color", "-U0", "before.rw", "after.rw"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1, told.stderr
    return [line for line in told.stdout.splitlines() if line[:1] in ("+", "-") and not line.startswith(("+++", "---"))]


def front(data: bytes) -> bytes:
    """Without the manifest and the small print."""
    return data[data.index(b"\n") + 1 : data.index(b'{"small_print"')]


@pytest.mark.process
def test_a_changed_sentence_of_the_prompt_is_one_changed_line(tmp_path: Path) -> None:
    before, after = (twelve_steps(rule, seed=1) for rule in (BEFORE, AFTER))
    changed = git_diff(tmp_path, front(before), front(after))
    assert [line[0] + line[1:].strip() for line in changed] == [f'-"{BEFORE} ",', f'+"{AFTER} ",']

    # In the whole file there are the manifest, and of each step key and hash.
    everything = git_diff(tmp_path, before, after)
    shown = "\n".join(everything)
    assert shown.count(BEFORE) == shown.count(AFTER) == 1
    gone = [line[1:].lstrip().split(":")[0] for line in everything if line.startswith("-")]
    assert gone == ['{"rewind_cassette"', f'"{BEFORE} ",', *['"key"', '"request"'] * 12]
    assert len(everything) == 2 * (1 + 1 + 12 * 2)
    assert len(shown) < 10_000


@pytest.mark.process
def test_of_a_recording_made_anew_the_small_print_takes_the_noise(tmp_path: Path) -> None:
    before, after = (twelve_steps(rule, seed=seed) for rule, seed in ((BEFORE, 1), (AFTER, 2)))
    changed = git_diff(tmp_path, front(before), front(after))
    told = [line for line in changed if '"id": "msg_' not in line]
    assert [line[0] + line[1:].strip() for line in told] == [f'-"{BEFORE} ",', f'+"{AFTER} ",']
    assert len(changed) == 2 + 2 * 12


def test_the_lines_of_a_cassette_are_short(tmp_path: Path) -> None:
    lines = twelve_steps(BEFORE, seed=1).decode().splitlines()
    assert max(map(len, lines)) < 140
