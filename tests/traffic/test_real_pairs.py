"""Bisect on real runs: where two of them part and why, and that it stays calm where they do not."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding, bisect
from rewind.compare.run import ComparedRun
from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.model.ids import SessionId
from rewind.model.message import Answered
from rewind.model.session import Recording, Session, SessionStart, Status
from rewind.model.step import Ending, Step, StepKind, StepRequest, StepResponse
from rewind.providers.catalogue import identify
from rewind.providers.summary import read
from support.traffic import Exchange, exchanges_in

pytestmark = pytest.mark.traffic

Cassettes = dict[str, list[Exchange]]
RunOf = Callable[[str], ComparedRun]

SPEAKERS = (
    "anthropic_claude_sonnet_4_0",
    "google_gemini_2_5_flash",
    "openai_gpt_4o_completions",
    "openai_gpt_4o_responses",
)
DRAWN_IDS = re.compile(
    rb"\b((?:call|toolu|srvtoolu|tooluse|fc|msg|resp|rs|ws|mcp|pyd_ai|req)_|chatcmpl-)([A-Za-z0-9]{8,})"
)


def run_of(exchanges: list[Exchange]) -> ComparedRun:
    """A cassette as if we had recorded it, one exchange a second."""
    steps = []
    for index, exchange in enumerate(exchanges, 1):
        call = understand(exchange.request)
        request = StepRequest(
            index=index,
            ts=1000.0 + index,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=exchange.request.head,
            model=call.provider.reader.asked(exchange.request).model,
        )
        response = StepResponse(
            ending=Ending.COMPLETE,
            head=exchange.response.head,
            ms=500.0,
            reading=read(call.provider, exchange.request, exchange.response),
        )
        steps.append(Step(request=request, response=response))
    start = SessionStart(id=SessionId("00000000"), name=None, command=(), cwd="", started=0.0, rewind_version="0")
    session = Session(start=start, end=None, status=Status.INTERRUPTED, folder="")
    recording = Recording(session=session, steps=tuple(steps))
    bodies = {at: (one.request.body, one.response.body) for at, one in enumerate(exchanges, 1)}
    return ComparedRun(recording, lambda step: bodies[step.index])


@pytest.fixture(scope="module")
def cassettes(traffic: Path) -> Cassettes:
    found: Cassettes = defaultdict(list)
    for exchange in exchanges_in(traffic):
        found[exchange.cassette].append(exchange)
    return found


@pytest.fixture(scope="module")
def named(cassettes: Cassettes) -> RunOf:
    """The run whose cassette's name ends so."""

    def find(ending: str) -> ComparedRun:
        (name,) = [name for name in cassettes if name.endswith(f"{ending}.yaml")]
        return run_of(cassettes[name])

    return find


def calls(finding: Finding) -> tuple[int | None, int | None]:
    """Where the runs part, counted as the set counts: calls to models, from 0."""

    def number(run: ComparedRun, index: int | None) -> int | None:
        llm = [step.index for step in run.recording.steps if step.request.kind is StepKind.LLM_CALL]
        return None if index is None else llm.index(index)

    good, bad = finding.step
    return number(finding.comparison.a, good), number(finding.comparison.b, bad)


def kinds(finding: Finding) -> list[CauseKind]:
    return [cause.kind for cause in finding.causes]


# ── one program on three platforms ───────────────────────────────────────────────────────────────────────────


def test_two_runs_of_several_agents_are_the_same(named: RunOf) -> None:
    found = bisect(named("test_dbos/test_multiple_agents"), named("test_temporal/test_multiple_agents"))
    assert not found.diverges
    assert found.causes == ()
    assert found.matched == found.total == 4


def test_runs_in_which_only_ids_and_times_differ_are_the_same(named: RunOf) -> None:
    found = bisect(
        named("test_dbos/test_dbos_agent_with_model_retry"), named("test_prefect/test_prefect_agent_with_model_retry")
    )
    assert not found.diverges
    assert found.matched == found.total == 3


def test_several_agents_part_at_the_last_call_and_the_tools_had_changed_before(named: RunOf) -> None:
    runs = named("test_dbos/test_multiple_agents"), named("test_prefect/test_multiple_agents")
    assert not bisect(*runs).answers_part, "in other words, all agents come to the same"
    found = bisect(*runs, exact_words=True)
    assert calls(found) == (3, 3)
    assert kinds(found)[0] is CauseKind.TOOLS
    assert set(kinds(found)) <= {CauseKind.TOOLS, CauseKind.SAMPLING}


def test_a_complex_agent_parts_at_the_last_call_of_itself(named: RunOf) -> None:
    runs = named("test_dbos/test_complex_agent_run_in_workflow"), named("test_temporal/test_complex_agent_run")
    assert not bisect(*runs).diverges
    found = bisect(*runs, exact_words=True)
    assert calls(found) == (2, 2)
    assert kinds(found) == [CauseKind.SAMPLING]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("test_dbos/test_complex_agent_run_in_workflow", "test_prefect/test_complex_agent_run_in_flow"),
        ("test_dbos/test_dbos_agent_with_model_retry", "test_temporal/test_durability_agent_with_model_retry"),
    ],
)
def test_where_the_tools_are_others_from_the_start_they_are_the_cause(named: RunOf, good: str, bad: str) -> None:
    found = bisect(named(good), named(bad))
    assert calls(found) == (0, 0)
    assert kinds(found) == [CauseKind.TOOLS]


def test_another_model_is_the_cause_from_the_first_call_on(named: RunOf) -> None:
    found = bisect(named("across_models[claude-haiku-4-5]"), named("across_models[claude-opus-5]"))
    assert calls(found) == (0, 0)
    assert kinds(found)[0] is CauseKind.MODEL


# ── whole and streamed ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("speaker", SPEAKERS)
def test_a_stream_is_no_other_request_and_says_the_same_where_its_words_are_the_same(
    cassettes: Cassettes, speaker: str
) -> None:
    folder = f"mirascope:python/tests/e2e/output/cassettes/test_call_with_tools/{speaker}"
    sync, stream = cassettes[f"{folder}/sync.yaml"], cassettes[f"{folder}/stream.yaml"]
    assert [is_streamed(exchange) for exchange in (*sync[:2], *stream[:2])] == [False, False, True, True]
    first, other_first = answered(sync[0]), answered(stream[0])
    assert first.tool_uses and other_first.tool_uses
    assert first.text == other_first.text
    assert answered(sync[1]).text != answered(stream[1]).text, "the set has other words there"
    assert not bisect(run_of(sync), run_of(stream)).diverges
    found = bisect(run_of(sync), run_of(stream), exact_words=True)
    assert found.matched == 1
    assert calls(found) == (1, 1)
    assert kinds(found) == [CauseKind.SAMPLING]


def is_streamed(exchange: Exchange) -> bool:
    return identify(exchange.request.head).reader.asked(exchange.request).streamed


def answered(exchange: Exchange) -> Answered:
    return identify(exchange.request.head).reader.answered(exchange.request, exchange.response)


# ── every run of the set ─────────────────────────────────────────────────────────────────────────────────────


def renamed(exchange: Exchange) -> Exchange:
    """With every id that a provider or a framework drew drawn otherwise, the same way wherever it stands."""

    def other(found: re.Match[bytes]) -> bytes:
        drawn = hashlib.sha256(found[2]).hexdigest().encode()
        return found[1] + (drawn * 3)[: len(found[2])]

    body = DRAWN_IDS.sub(other, exchange.request.body)
    return replace(
        exchange,
        request=HttpRequest(head=exchange.request.head, body=body),
        response=replace(exchange.response, body=DRAWN_IDS.sub(other, exchange.response.body)),
    )


def test_every_run_equals_itself(cassettes: Cassettes) -> None:
    different = []
    for name, exchanges in cassettes.items():
        found = bisect(run_of(exchanges), run_of(exchanges))
        if found.diverges or found.causes or found.matched != found.total:
            different.append((name, found.step, kinds(found)))
    assert len(cassettes) > 200
    assert different == []


def test_every_run_equals_itself_with_all_its_ids_drawn_anew(cassettes: Cassettes) -> None:
    different, changed = [], 0
    for name, exchanges in cassettes.items():
        if any(one.stream_format == "aws-eventstream" for one in exchanges):
            continue  # their frames carry checksums
        others = [renamed(exchange) for exchange in exchanges]
        changed += others != exchanges
        found = bisect(run_of(exchanges), run_of(others))
        if found.diverges or found.causes:
            different.append((name, found.step, kinds(found)))
    assert changed > 150
    assert different == []


def test_any_two_runs_can_be_compared_with_the_same_result_every_time(cassettes: Cassettes) -> None:
    """And if one left the other, the other left the one."""
    random = Random("real pairs")
    names = sorted(cassettes)
    families: dict[str, list[str]] = defaultdict(list)
    for name in names:
        families[name.rpartition("/")[0]].append(name)
    related = [family for family in families.values() if len(family) > 1]
    pairs = [tuple(random.sample(names, k=2)) for _ in range(150)]
    pairs += [tuple(random.sample(random.choice(related), k=2)) for _ in range(150)]
    runs = {name: run_of(exchanges) for name, exchanges in cassettes.items()}
    parted = 0
    for good, bad in pairs:
        found = bisect(runs[good], runs[bad])
        again = bisect(run_of(cassettes[good]), run_of(cassettes[bad]))
        turned = bisect(runs[bad], runs[good])
        assert (found.step, kinds(found)) == (again.step, kinds(again)), (good, bad)
        assert found.diverges == turned.diverges, (good, bad)
        assert bool(found.causes) == found.diverges, (good, bad)
        parted += found.diverges
    assert parted > 250


def interleaved(cassettes: Cassettes, seed: str) -> list[Exchange]:
    """All runs at once, side by side: each in its own order, and together in any."""
    random = Random(seed)
    answered = {
        name: [one for one in exchanges if one.kind == "llm" and not one.failed]  # a retry has its place
        for name, exchanges in cassettes.items()
    }
    turns = [name for name, exchanges in answered.items() for _ in exchanges]
    random.shuffle(turns)
    left = {name: iter(exchanges) for name, exchanges in answered.items()}
    return [next(left[name]) for name in turns]


def test_hundreds_of_parallel_exchanges_in_another_order_are_the_same_run(cassettes: Cassettes) -> None:
    ours, theirs = (run_of(interleaved(cassettes, seed)) for seed in ("one order", "another order"))
    finding = bisect(ours, theirs)
    comparison = finding.comparison
    alone = [row.indexes for row in comparison.rows if row.a is None or row.b is None]
    changed = [row.indexes for row in comparison.rows if row.a and row.b and not comparison.relation(row).alike]
    assert len(comparison.rows) > 390
    assert (alone, changed) == ([], [])
    assert not finding.diverges and not finding.partings
