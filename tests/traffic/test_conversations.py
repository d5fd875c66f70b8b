"""Threads and tool calls in real runs of agents."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewind.conversation.outline import Outline, outline_of
from rewind.match.call import understand
from rewind.model.ids import SessionId
from rewind.model.session import Recording, Session, SessionStart, Status
from rewind.model.step import Ending, Step, StepRequest, StepResponse
from support.traffic import Exchange, exchanges_in

pytestmark = pytest.mark.traffic

RESULT_IDS = ("tool_use_id", "tool_call_id", "toolUseId")


def recording_of(exchanges: list[Exchange]) -> tuple[Recording, dict[int, Exchange]]:
    """A cassette as if we had recorded it, one exchange a second."""
    steps, by_index = [], {}
    for index, exchange in enumerate(exchanges, 1):
        call = understand(exchange.request)
        request = StepRequest(
            index=index,
            ts=1000.0 + index,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=exchange.request.head,
        )
        response = StepResponse(ending=Ending.COMPLETE, head=exchange.response.head, ms=500.0)
        steps.append(Step(request=request, response=response))
        by_index[index] = exchange
    start = SessionStart(id=SessionId("00000000"), name=None, command=(), cwd="", started=0.0, rewind_version="0")
    session = Session(start=start, end=None, status=Status.INTERRUPTED, folder="")
    return Recording(session=session, steps=tuple(steps)), by_index


def outlined(exchanges: list[Exchange]) -> Outline:
    recording, by_index = recording_of(exchanges)
    return outline_of(recording, lambda step: (by_index[step.index].request.body, by_index[step.index].response.body))


@pytest.fixture(scope="module")
def cassettes(traffic: Path) -> dict[str, list[Exchange]]:
    found: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges_in(traffic):
        found[exchange.cassette].append(exchange)
    return found


@pytest.fixture(scope="module")
def outlines(cassettes: dict[str, list[Exchange]]) -> dict[str, Outline]:
    return {name: outlined(exchanges) for name, exchanges in cassettes.items()}


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


def brought(exchange: Exchange) -> tuple[set[str], Counter[str]]:
    """The ids of the results that a request brings, and the names of those that have none: straight from its JSON."""
    try:
        document = json.loads(exchange.request.body)
    except ValueError:
        return set(), Counter()
    ids, names = set[str](), Counter[str]()
    for one in objects(document):
        ids.update(str(one[name]) for name in RESULT_IDS if name in one and one.get("type") != "server_tool_use")
        if str(one.get("type", "")).endswith("_call_output"):
            ids.add(str(one.get("call_id")))
        response = one.get("functionResponse") or one.get("function_response")
        if isinstance(response, dict):
            if response.get("id"):
                ids.add(str(response["id"]))
            else:
                names[str(response.get("name"))] += 1
    return ids, names


def test_every_tool_call_whose_result_appears_later_is_paired(
    cassettes: dict[str, list[Exchange]], outlines: dict[str, Outline], capsys: pytest.CaptureFixture[str]
) -> None:
    asked_for = paired = 0
    unpaired: list[str] = []
    without_result: Counter[str] = Counter()
    for name, outline in outlines.items():
        exchanges = cassettes[name]
        for call in outline.tools:
            asked_for += 1
            if call.result is not None:
                paired += 1
                continue
            later = [brought(exchange) for exchange in exchanges[call.asked_in :]]
            appears = any(call.use.id in ids for ids, _ in later) if call.use.id else False
            appears = appears or (not call.use.id and any(call.use.name in names for _, names in later))
            if appears:
                unpaired.append(f"{name} {call.label} {call.use.name}")
            else:
                is_last = call.asked_in == len(exchanges)
                without_result["asked for in the last answer" if is_last else "no later request has it"] += 1
    with capsys.disabled():
        print(f"\ntool calls: {asked_for} found, {paired} paired, {dict(without_result)} without a result")
    assert asked_for > 200
    assert unpaired == []
    assert set(without_result) == {"asked for in the last answer"}


def test_no_conversation_is_torn_that_the_set_sees_as_one(
    outlines: dict[str, Outline], traffic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The set counts, by a simpler rule, the calls that continue no earlier one.

    Ours may be fewer: a question that is asked again stands beside the first, and a history that is handed on to
    another provider stays one conversation. They may never be more.
    """
    roots = {entry["cassette"]: entry["roots"] for entry in json.loads((traffic / "INDEX.json").read_text())}
    torn = {name: found for name, outline in outlines.items() if (found := outline.threads) > roots[name]}
    fewer = sum(outline.threads < roots[name] for name, outline in outlines.items())
    with capsys.disabled():
        print(
            f"\nthreads: {sum(one.threads for one in outlines.values())} of {sum(roots.values())} roots, "
            f"fewer in {fewer} of {len(outlines)} cassettes"
        )
    assert torn == {}
    assert fewer < 30


def test_every_step_of_a_conversation_but_the_first_has_a_parent_in_it_or_stands_beside_another(
    outlines: dict[str, Outline],
) -> None:
    for name, outline in outlines.items():
        threads = {one.step.index: one.place.thread for one in outline.steps if one.place is not None}
        firsts: set[int] = set()
        for one in outline.steps:
            if one.place is None:
                continue
            parent = one.place.parent
            if parent is not None:
                assert parent < one.step.index, name
            if parent is None or threads[parent] != one.place.thread:
                firsts.add(one.place.thread)
        assert firsts == set(threads.values()), name
