"""A long conversation costs what is new in each turn, not what is repeated, and stays exact to the byte."""

import hashlib
import random
from collections.abc import Callable

import pytest

from rewind.store.library import Library
from support.answers import openai_chat
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

TURNS = 200
MakeLab = Callable[[Playbook], Lab]


def wordy(request: Request) -> Answer:
    """About one kilobyte of text that is new every time."""
    chance = random.Random(request.hit)
    words = ("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(150))
    return openai_chat(request, " ".join(words))


@pytest.mark.timeout(300)
def test_two_hundred_turns_take_at_most_4_kb_a_step_and_are_exact(lab: MakeLab) -> None:
    bench = lab(wordy)
    recorded = bench.record("conversation.py", str(TURNS), "4711", timeout=200).ok()
    sent = [request.body for request in bench.provider.requests]
    assert len(sent) == TURNS
    assert len(sent[-1]) > TURNS * 2000, "the context is meant to grow by about 2 KB a turn"

    library = Library(bench.home)
    session = library.find(recorded.session)
    on_disk = sum(path.stat().st_size for path in (bench.home / "sessions" / session.folder).rglob("*"))
    assert on_disk / TURNS <= 4096, f"{on_disk / TURNS:.0f} bytes a step"

    told = [line["sha256"] for line in recorded.lines]
    with library.open(session) as reader:
        steps = reader.recording().steps
        assert len(steps) == TURNS
        for step, body, digest in zip(steps, sent, told, strict=True):
            assert reader.blob(step.request.body) == body
            assert step.response is not None
            assert hashlib.sha256(reader.blob(step.response.body)).hexdigest() == digest

    replayed = bench.replay(recorded.session, timeout=200).ok()
    assert replayed.stdout == recorded.stdout
