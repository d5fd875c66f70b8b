"""Laws of renaming: what two runs may call otherwise, and that nothing else is ever taken for it."""

import json
import random
import time
import uuid
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.match.call import Call, understand
from rewind.match.facts import RunFacts
from rewind.match.renaming import Renaming
from rewind.match.written_times import RunClock
from rewind.model.http import Chunk, HttpResponse, ResponseHead
from rewind.playback.decision import Serve
from rewind.playback.translation import AnswerNames, translated
from support.effort import effort
from support.exchanges import answer_with, request_of
from support.recorded_requests import Recorded

THEN, NOW = 1_794_910_000.0, 1_795_169_200.0  # 17 and 20 November 2026, at 10:06 UTC
FOLDERS = "/work/alpha/project", "/elsewhere/b"
GIVEN = "6f1c24d8-9a53-4be0-8d17-52c0e3a94b7f", "0b7e93a1-44cd-4f26-b8e2-91d5f06c3a58"
"""Ids that the user gave, one to each run."""

# ── requests, in the shapes of the APIs ──────────────────────────────────────────────────────────────────────


def chat(texts: list[str]) -> dict[str, Any]:
    system, user, result, field = texts
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": json.dumps({"at": user})}}
    return {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": [{"type": "text", "text": user}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ],
        "metadata": {"note": field},
    }


def responses(texts: list[str]) -> dict[str, Any]:
    system, user, result, field = texts
    return {
        "model": "gpt-5",
        "instructions": system,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": user}]},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": json.dumps({"at": field})},
            {"type": "function_call_output", "call_id": "call_1", "output": result},
        ],
    }


def anthropic(texts: list[str]) -> dict[str, Any]:
    system, user, result, field = texts
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": system}],
        "messages": [
            {"role": "user", "content": user},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "x", "input": {"at": field}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": result}]},
        ],
    }


def gemini(texts: list[str]) -> dict[str, Any]:
    system, user, result, field = texts
    return {
        "systemInstruction": {"parts": [{"text": system}]},
        "contents": [
            {"role": "user", "parts": [{"text": user}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": field}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": result}}}]},
        ],
    }


def plain(texts: list[str]) -> dict[str, Any]:
    return {"query": texts[0], "list": texts[1:3], "deep": {"er": [{"text": texts[3], "n": 3, "none": None}]}}


SHAPES = [
    (chat, "api.openai.com", "/v1/chat/completions"),
    (responses, "api.openai.com", "/v1/responses"),
    (anthropic, "api.anthropic.com", "/v1/messages"),
    (gemini, "generativelanguage.googleapis.com", "/v1beta/models/gemini-2.5-pro:generateContent"),
    (plain, "search.example.com", "/v1/search"),
]

# ── texts, of pieces that mean the same in both runs or not ──────────────────────────────────────────────────

WORDS = (
    *("refund", "return", "order", "please", "look", "write", "agent", "file", "customer", "monthly", "report", "in"),
    *(
        "of",
        "the",
        "a",
        "Berlin",
        "München",
        "注文",
        "naïve",
        "v2",
        "A7",
        "LH1234",
        "3.11.7",
        "gpt-4o-mini",
        '"quoted"',
    ),
    *("INV-2026-0001", "read_file", "src/main.py:12", "#ff8800", "192.168.0.1", "(really)", "task-deploy2prod"),
)
AMOUNTS = (
    *("19.99 EUR", "29.99 EUR", "28 days", "24 days", "2 weeks", "3 weeks", "42 %", "43 %", "$5", "$6"),
    *("5 kg", "6 kg", "3.5 hours", "4.5 hours"),
)
FORMS = (
    *("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d", "%A, %B %d, %Y", "%d %B %Y", "%d.%m.%Y", "%Y%m%dT%H%M%SZ"),
    *("%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y", "%m/%d/%Y, %I:%M:%S %p", "%b %d %H:%M", "%Y-%m-%dT%H-%M-%S"),
)
KINDS_OF_ID = ("{}", "pyd_ai_{}", "resp_{}", "thread_{}", "[{}]", "'{}'", "id={}", "{}.txt")

Piece = tuple[str, Any]
same_pieces = st.one_of(
    st.tuples(st.just("word"), st.integers(0, len(WORDS) - 1)),
    st.tuples(st.just("number"), st.integers(0, 999_999)),
    st.tuples(st.just("amount"), st.integers(0, len(AMOUNTS) - 1)),
    st.tuples(st.just("foreign"), st.tuples(st.integers(0, 3000), st.sampled_from(FORMS))),
    st.tuples(st.just("given"), st.just(0)),
)
renamed_pieces = st.one_of(
    st.tuples(st.just("id"), st.tuples(st.integers(0, 5), st.sampled_from(KINDS_OF_ID))),
    st.tuples(st.just("hex"), st.integers(0, 5)),
    st.tuples(st.just("folder"), st.sampled_from(["", "/notes.md", "/src/a b.py"])),
    st.tuples(st.just("time"), st.tuples(st.integers(0, 15), st.sampled_from(FORMS))),
    st.tuples(st.just("epoch"), st.integers(0, 15)),
)
pieces = st.lists(st.one_of(same_pieces, renamed_pieces), max_size=8)
joints = st.sampled_from(["; ", ".\n", " | ", "\n- "])


class Run:
    """One of two runs: its clock, its folder and the ids that it draws."""

    def __init__(self, number: int, seed: int) -> None:
        self.began, self.folder = (THEN, NOW)[number], FOLDERS[number]
        self._number = number
        dice = random.Random(f"{seed} {number}")
        self.ids = [str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(6)]
        self._hex = [f"{dice.getrandbits(104):026x}a1b2c3" for _ in range(6)]
        self.shift = dice.randrange(5)

    def facts(self) -> RunFacts:
        return RunFacts(
            clock=RunClock(began=self.began, until=lambda: self.began + 20),
            folders={"folder": self.folder, "home": "/home/ada", "temp": "/tmp"},
            names={"user": "ada"},
            given=f"agent.py --customer {GIVEN[self._number]} --other {GIVEN[0]}",
        )

    def written(self, piece: Piece) -> str:
        kind, value = piece
        match kind:
            case "word":
                return WORDS[value]
            case "number":
                return str(value)
            case "amount":
                return AMOUNTS[value]
            case "foreign":
                days, form = value
                return time.strftime(form, time.gmtime(THEN + (400 + days) * 86400 + 7 * 3600))
            case "given":
                return f"customer {GIVEN[value]}"
            case "id":
                number, form = value
                return form.format(self.ids[number])
            case "hex":
                return self._hex[value]
            case "folder":
                return f"{self.folder}{value}"
            case "time":
                seconds, form = value
                return time.strftime(form, time.gmtime(self.began + seconds + self.shift))
        return str(int(self.began) + value + self.shift)

    def call(self, shape: int, texts: list[list[Piece]], joint: str) -> Call:
        make, host, target = SHAPES[shape]
        body = make([joint.join(map(self.written, text)) for text in texts])
        return understand(request_of(body, host=host, target=target))


four_texts = st.lists(pieces, min_size=4, max_size=4)
shapes = st.integers(0, len(SHAPES) - 1)
seeds = st.integers(0, 2**32)


def two_runs(seed: int) -> tuple[Run, Run]:
    return Run(0, seed), Run(1, seed)


# ── what is the same ─────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=effort(15, 1000))
@given(shapes, four_texts, joints, seeds)
def test_a_request_is_the_same_as_itself_without_another_name(
    shape: int, texts: list[list[Piece]], joint: str, seed: int
) -> None:
    then, now = two_runs(seed)
    trial = Renaming(then.facts(), now.facts()).trial(then.call(shape, texts, joint), then.call(shape, texts, joint))
    assert trial is not None
    assert not trial.pairs
    assert not trial.translated


@settings(max_examples=effort(50, 3000))
@given(shapes, four_texts, joints, seeds)
def test_a_request_in_other_names_is_the_same_both_ways_and_has_the_same_outline(
    shape: int, texts: list[list[Piece]], joint: str, seed: int
) -> None:
    then, now = two_runs(seed)
    recorded, asked = then.call(shape, texts, joint), now.call(shape, texts, joint)
    names = Renaming(then.facts(), now.facts())
    outlines = names.outlines()
    assert outlines.of(recorded) == outlines.of(asked)
    trial = names.trial(recorded, asked)
    assert trial is not None
    back = Renaming(now.facts(), then.facts()).trial(asked, recorded)
    assert back is not None
    assert {(pair.kind, pair.now, pair.then) for pair in trial.pairs} == {
        (pair.kind, pair.then, pair.now) for pair in back.pairs
    }
    told = names.keep(trial, asked)
    again = names.trial(recorded, asked)
    assert again is not None
    assert set(names.keep(again, asked)) == set(told)


# ── what is not ──────────────────────────────────────────────────────────────────────────────────────────────


def changed(piece: Piece, dice: random.Random) -> Piece:
    """Another one of its kind."""
    kind, value = piece
    match kind:
        case "word":
            return kind, (value + dice.randrange(1, len(WORDS))) % len(WORDS)
        case "number":
            return kind, value + dice.choice([1, 10, 1_000])
        case "amount":
            return kind, value ^ 1
        case "foreign":
            days, form = value
            return kind, (days + dice.choice([1, 31, 400]), form)
    return kind, 1


@settings(max_examples=effort(50, 3000))
@given(shapes, four_texts, same_pieces, st.integers(0, 3), seeds, joints)
def test_a_request_that_differs_in_more_than_names_is_never_taken_for_the_same(
    shape: int, texts: list[list[Piece]], piece: Piece, where: int, seed: int, joint: str
) -> None:
    then, now = two_runs(seed)
    dice = random.Random(seed)
    at = dice.randint(0, len(texts[where]))
    before, after = ([*text] for text in (texts[where], texts[where]))
    before.insert(at, piece)
    after.insert(at, changed(piece, dice))
    recorded = then.call(shape, [*texts[:where], before, *texts[where + 1 :]], joint)
    asked = now.call(shape, [*texts[:where], after, *texts[where + 1 :]], joint)
    assert Renaming(then.facts(), now.facts()).trial(recorded, asked) is None
    assert Renaming(now.facts(), then.facts()).trial(asked, recorded) is None


# ── conversations side by side ───────────────────────────────────────────────────────────────────────────────


class Conversation:
    """An agent that talks with one model, and tells it its id and all that was said."""

    def __init__(self, name: str, day: str, turns: int) -> None:
        self.name, self.turns = name, turns
        self.messages = [{"role": "system", "content": f"Today is {day}. Session {name}."}]

    def ask(self) -> Any:
        self.turns -= 1
        self.messages.append({"role": "user", "content": "go on"})
        return request_of({"model": "gpt-4o", "messages": self.messages})

    def hear(self, said: str) -> None:
        self.messages.append({"role": "assistant", "content": said})


def interleaved(conversations: list[Conversation], dice: random.Random) -> Any:
    while going := [one for one in conversations if one.turns]:
        yield dice.choice(going)


@settings(max_examples=effort(20, 1000))
@given(st.integers(2, 4), st.integers(1, 4), seeds)
def test_conversations_that_differ_only_in_a_drawn_id_keep_their_own_answers(count: int, turns: int, seed: int) -> None:
    then, now = two_runs(seed)
    dice = random.Random(seed)
    requests, answers, owners = [], [], []
    for one in interleaved([Conversation(name, "2026-11-17", turns) for name in then.ids[:count]], dice):
        requests.append(one.ask())
        answers.append(f"turn {one.turns} of {one.name}")
        owners.append(one.name)
        one.hear(answers[-1])
    recorded = Recorded(*requests)
    policy = recorded.replay(renaming=lambda: Renaming(then.facts(), now.facts()))
    owner: dict[str, str] = {}
    for one in interleaved([Conversation(name, "2026-11-20", turns) for name in now.ids[:count]], dice):
        decision = policy.decide(understand(one.ask()))
        assert isinstance(decision, Serve)
        assert decision.in_our_names is not None
        index = decision.step.index - 1
        assert owner.setdefault(one.name, owners[index]) == owners[index], "another conversation's answer"
        said = json.loads(decision.in_our_names(answer_with({"said": answers[index]})).body)["said"]
        assert said == f"turn {one.turns} of {one.name}"
        one.hear(said)
    assert len(set(owner.values())) == count
    assert len(recorded.tape.unplayed()) == 0


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = {
    "/work/Bücher/proj": "/else/b",
    "/work/Bücher": "/else/longer than before/ü",
    "call_8Hf2kLw0": "call_P3rt0",
    GIVEN[0]: GIVEN[1],
}
FILLERS = ("x", "call_", "/work", "é", "😀", "word ", "8Hf2kLw0", "\\", "_", "-", "/work/Büchern")
said_pieces = st.lists(
    st.one_of(
        st.tuples(st.just("name"), st.sampled_from(sorted(NAMES))),
        st.tuples(st.just("filler"), st.text(st.sampled_from('abz 059\n\t"\\/é😀_-.,{}:'), max_size=6)),
        st.tuples(st.just("filler"), st.sampled_from(FILLERS)),
    ),
    max_size=9,
)
BORDERS = (" ", "\n", "\t", '"', ", ", "é ", "(", "😀")


def told(said: list[tuple[str, str]], border: str, names: dict[str, str]) -> str:
    """Names stand alone between borders; fillers are whatever."""
    parts = (names.get(text, text) if kind == "name" else text for kind, text in said)
    return border + "".join(f"{part}{border}" for part in parts)


def cut(length: int, places: list[float]) -> list[tuple[int, int]]:
    return list(pairwise([0, *sorted(int(place * length) for place in places), length]))


def answer(body: bytes, media: str, places: list[float]) -> HttpResponse:
    headers = (("Content-Type", media), ("Content-Length", str(len(body))))
    chunks = tuple(Chunk(at, end - start) for at, (start, end) in enumerate(cut(len(body), places)) if end > start)
    return HttpResponse(head=ResponseHead(status=200, reason="OK", headers=headers), body=body, chunks=chunks)


def sizes_fit(response: HttpResponse) -> bool:
    ends = list(accumulate(chunk.size for chunk in response.chunks))
    return (ends[-1] if ends else 0) == len(response.body) == int(response.head.header("content-length") or -1)


shares = st.lists(st.floats(0, 1), max_size=6)


@settings(max_examples=effort(25, 1000))
@given(said_pieces, st.sampled_from(BORDERS), st.booleans(), shares)
def test_an_answer_in_other_names_is_the_same_but_for_them(
    said: list[tuple[str, str]], border: str, ascii_only: bool, chunks: list[float]
) -> None:
    text, wanted = told(said, border, {}), told(said, border, NAMES)
    document = {"a": [text, 1.0, None], "call_8Hf2kLw0x": {"b": text}, "arguments": json.dumps({"c": text})}
    expected = {"a": [wanted, 1.0, None], "call_8Hf2kLw0x": {"b": wanted}}
    response = answer(json.dumps(document, ensure_ascii=ascii_only).encode(), "application/json", chunks)
    got = translated(response, AnswerNames(NAMES))
    found = json.loads(got.body)
    assert json.loads(found.pop("arguments")) == {"c": wanted}
    assert found == expected
    assert sizes_fit(got)
    assert translated(got, AnswerNames({})) is got


@settings(max_examples=effort(25, 1000))
@given(said_pieces, st.sampled_from(BORDERS), st.booleans(), shares, shares)
def test_a_stream_in_other_names_says_the_same_but_for_them_wherever_it_is_cut(
    said: list[tuple[str, str]], border: str, ascii_only: bool, deltas: list[float], chunks: list[float]
) -> None:
    text, wanted = told(said, border, {}), told(said, border, NAMES)
    parts = [text[start:end] for start, end in cut(len(text), deltas)]
    documents = [
        {"type": "delta", "n": n, "id": "call_8Hf2kLw0", "delta": {"text": part}} for n, part in enumerate(parts)
    ]
    lines = [f"event: delta\ndata: {json.dumps(one, ensure_ascii=ascii_only)}\n\n" for one in documents]
    response = answer("".join([": hello\n\n", *lines, "data: [DONE]\n\n"]).encode(), "text/event-stream", chunks)
    got = translated(response, AnswerNames(NAMES))
    assert sizes_fit(got)
    head, *events, done, rest = got.body.decode().split("\n\n")
    assert (head, done, rest) == (": hello", "data: [DONE]", "")
    found = [json.loads(event.removeprefix("event: delta\ndata: ")) for event in events]
    assert "".join(one["delta"].pop("text") for one in found) == wanted
    assert found == [{"type": "delta", "n": n, "id": "call_P3rt0", "delta": {}} for n in range(len(parts))]
