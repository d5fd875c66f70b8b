"""A reader of cassettes written from docs/formats.md alone: it gets the same bytes as ours."""

import base64
import gzip
import hashlib
import json
from typing import Any

import pytest

from rewind.store.cassette.read import read_cassette
from unit.store.making import GrowingAgent
from unit.store.taping import Taped, ended, exchange, taped, taped_steps
from unit.store.test_cassette import rich
from unit.store.test_cassette_layout import early_change, json_in_a_string, odd_json, transcript, two_agents


class ByHand:
    """The bodies of a cassette, by name."""

    def __init__(self, data: bytes) -> None:
        line, _, rest = data.partition(b"\n")
        begin = line[: line.index(b', "sha256"')]
        manifest = json.loads(line)
        assert manifest["rewind_cassette"] == 1
        assert manifest["sha256"] == hashlib.sha256(begin + rest).hexdigest()
        pieces = rest.decode().split("\n{")
        records = [json.loads(piece if at == 0 else "{" + piece) for at, piece in enumerate(pieces)]
        self.shown: dict[str, Any] = {}
        self.bodies: dict[str, bytes] = {}
        small = {record["small_print"]: record for record in records if "small_print" in record}
        for record in records:
            if "step" in record:
                number = record["step"]
                for half in ("request", "answer"):
                    told = self.undo(record.get(half, {}))
                    self.shown[f"{half} {number} headers"] = told.get("headers")
                    self.take(f"{half} {number}", told.get("body"), small[number].get(half, {}))
            elif "end" in record:
                end = self.undo(record["end"])
                for stream in ("stdin", "stdout", "stderr"):
                    self.take(stream, end.get(stream), small["session"].get(stream, {}))
        assert len(records) >= manifest["steps"] * 2

    def take(self, name: str, body: Any, small: Any) -> None:
        if not body:
            return
        if "same_as" in body:
            self.bodies[name] = self.bodies[body["same_as"]]
            return
        data = self.plain(name, body, small)
        if "coding" in body:
            assert body["coding"] == "gzip"
            assert len(data) == small["unfolded"]
            packed = base64.b64decode("".join(small["bytes"]))
            assert gzip.decompress(packed) == data
            data = packed
        assert (len(data), hashlib.sha256(data).hexdigest()) == (small["size"], small["sha256"])
        self.bodies[name] = data

    def plain(self, name: str, body: Any, small: Any) -> bytes:
        if "bytes" in body:
            return base64.b64decode("".join(small["bytes"]))
        form = next(form for form in ("json", "events", "lines", "text") if form in body)
        root, style, newline = body[form], body.get("style", {}), body.get("newline", "\n")
        self.shown[name] = root
        if form == "json":
            return self.written(root, style).encode()
        if form == "text":
            return "".join(root).encode()
        pads, text = list(small.get("pads", [])), ""
        for one in root:
            if isinstance(one, str):
                text += one
                continue
            data = self.written(one, style)
            data = data[:-1] + " " * (pads.pop(0) if pads else 0) + data[-1]
            event = body.get("event")
            named = one["type"] if event == "{type}" else event
            if form == "events":
                text += ("" if named is None else f"event: {named}{newline}") + f"data: {data}{newline}{newline}"
            else:
                text += data + newline
        return text.encode()

    def written(self, value: Any, style: Any) -> str:
        text = json.dumps(
            value,
            separators=(style.get("comma", ","), style.get("colon", ":")),
            indent=style.get("indent"),
            ensure_ascii=style.get("ascii", False),
        )
        for letter in style.get("escapes", ""):
            text = text.replace(letter, "\\/" if letter == "/" else f"\\u{ord(letter):04x}")
        return style.get("before", "") + text + style.get("after", "")

    def undo(self, value: Any) -> Any:
        if isinstance(value, list):
            whole: list[Any] = []
            for one in value:
                if isinstance(one, dict) and "@same" in one and "count" in one:
                    start = one.get("from", 0)
                    whole += self.at(one["@same"])[start : start + one["count"]]
                else:
                    whole.append(self.undo(one))
            return whole
        if not isinstance(value, dict):
            return value
        if "@lines" in value:
            return "".join(map(self.line, value["@lines"]))
        if "@same" in value:
            return self.at(value["@same"])
        return {name[1:] if name.startswith("@") else name: self.undo(one) for name, one in value.items()}

    def line(self, part: Any) -> str:
        if isinstance(part, str):
            return part
        text: str = self.at(part["@same"])
        if "characters" in part:
            start, count = part["characters"]
            return text[start : start + count]
        start = part.get("from", 0)
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return "".join(lines[start : start + part["count"]])

    def at(self, address: str) -> Any:
        name, _, path = address.partition(" /")
        value = self.shown[name]
        for token in path.split("/") if path else ():
            key = token.replace("~1", "/").replace("~0", "~")
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value


def of_every_form() -> Taped:
    stream = b'event: a\ndata: {"type":"a","n":1  }\n\nevent: b\ndata: {"type":"b"}\n\ndata: [DONE]\n\n'
    coding = (("content-encoding", "gzip"),)
    made = [
        exchange(1, b"\xff" * 200, stream),
        exchange(2, b"plain\ntext\n" * 30, gzip.compress(stream * 9), headers=coding),
        exchange(3, b'{"n":1}\n{"n":2}\n', b'data: {"a": 1}\r\n\r\ndata: {"a": 2}\r\n\r\n'),
        exchange(4, b'{\n  "@same": "\\u003cb\\u003e"\n}\n', b'\n{"a": "\\u00e9"}'),
        exchange(5, b"\xff" * 200, stream),
    ]
    return taped_steps(made, end=ended())


def growing() -> Taped:
    agent = GrowingAgent(said=300, answered=200)
    return taped([agent.turn() for _ in range(6)])


@pytest.mark.parametrize(
    "tape",
    [
        of_every_form(),
        rich(),
        growing(),
        *(taped(session(14)) for session in (early_change, two_agents, odd_json, transcript, json_in_a_string)),
    ],
)
def test_who_follows_the_description_reads_the_same(tape: Taped) -> None:
    data = tape.cassette()
    by_hand = ByHand(data).bodies
    portable = read_cassette(data, file="x.rw")
    for step in portable.recording.steps:
        halves = {"request": step.request.body}
        if step.response is not None:
            halves["answer"] = step.response.body
        for half, blob in halves.items():
            if blob in portable.blobs:
                assert by_hand[f"{half} {step.index}"] == portable.blobs[blob]
    assert len(by_hand) >= len(portable.blobs)
