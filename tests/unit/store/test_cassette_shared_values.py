"""A long conversation in a cassette: each of its messages is read and written a few times, however often it stands."""

import json
import random

import pytest

from rewind.store.cassette import shared_values
from rewind.store.cassette.json_text import JsonTextStyle, escaped
from rewind.store.cassette.read import read_cassette
from unit.store.making import words
from unit.store.taping import Taped, taped

TURNS = 120


class Counted:
    """Counts the characters that are written."""

    def __init__(self) -> None:
        self.characters = 0

    def __call__(self, text: str, style: JsonTextStyle) -> str:
        self.characters += len(text)
        return escaped(text, style)


@pytest.fixture(scope="module")
def tape() -> Taped:
    source, messages, exchanges = random.Random(3), [], []
    for turn in range(TURNS):
        messages.append({"role": "user", "content": words(source, 900) + " \U0001f600 </a>"})
        exchanges.append((json.dumps({"model": "m", "messages": messages, "turn": turn}).encode(), b'{"a": 1}'))
    return taped(exchanges)


def test_what_a_request_repeats_is_written_out_once_when_the_file_is_read(
    tape: Taped, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tape.cassette()
    counted = Counted()
    monkeypatch.setattr(shared_values, "escaped", counted)

    read = read_cassette(data, file="x.rw")

    assert [read.blobs[step.request.body] for step in read.recording.steps] == [
        tape.blobs[step.request.body] for step in tape.recording.steps
    ]
    assert counted.characters < 4 * len(data)


def test_how_a_request_is_written_is_found_out_from_what_is_new_of_it(
    tape: Taped, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted()
    monkeypatch.setattr(shared_values, "escaped", counted)

    data = tape.cassette()

    assert TURNS * 900 < counted.characters < 4 * len(data)
