"""Real pairs of runs, put into a store and compared by the commands."""

import json
from pathlib import Path

import pytest

from rewind.cli.main import run
from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import Threads
from rewind.errors import ExitCode
from rewind.match.call import understand
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, Reading, StepRequest, StepResponse
from rewind.store.journal.writer import SessionWriter
from support.traffic import Exchange, exchanges_in

pytestmark = pytest.mark.traffic

TESTS = "pydantic-ai:tests/cassettes/"
ACROSS = (
    "pydantic-ai:tests/models/cassettes/test_anthropic/"
    "test_anthropic_deferred_capability_without_tool_search_across_models"
)
RUNS = {
    "dbos-agents": f"{TESTS}test_dbos/test_multiple_agents.yaml",
    "temporal-agents": f"{TESTS}test_temporal/test_multiple_agents.yaml",
    "prefect-agents": f"{TESTS}test_prefect/test_multiple_agents.yaml",
    "dbos-retry": f"{TESTS}test_dbos/test_dbos_agent_with_model_retry.yaml",
    "prefect-retry": f"{TESTS}test_prefect/test_prefect_agent_with_model_retry.yaml",
    "dbos-complex": f"{TESTS}test_dbos/test_complex_agent_run_in_workflow.yaml",
    "temporal-complex": f"{TESTS}test_temporal/test_complex_agent_run.yaml",
    "haiku": f"{ACROSS}[claude-haiku-4-5].yaml",
    "opus": f"{ACROSS}[claude-opus-5].yaml",
}


@pytest.fixture(scope="module")
def home(traffic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("pairs") / "store"
    names = {cassette: name for name, cassette in RUNS.items()}
    chosen: dict[str, list[Exchange]] = {}
    for exchange in exchanges_in(traffic):
        if exchange.cassette in names:
            chosen.setdefault(names[exchange.cassette], []).append(exchange)
    assert chosen.keys() == RUNS.keys()
    for number, (name, exchanges) in enumerate(chosen.items()):
        write(store, f"{number:08x}", name, exchanges)
    return store


def write(store: Path, session: str, name: str, exchanges: list[Exchange]) -> None:
    """As the recorder writes it."""
    start = SessionStart(
        id=SessionId(session), name=name, command=("agent",), cwd="/", started=1.7e9, rewind_version=""
    )
    writer = SessionWriter.create(store, start)
    threads = Threads(with_starters=False)
    for exchange in exchanges:
        index = exchange.index + 1
        call = understand(exchange.request, index=index)
        asked = call.provider.reader.asked(call.request)
        answered = call.provider.reader.answered(call.request, exchange.response)
        place = threads.call(index, call.key, asked)
        threads.answer(index, answered)
        writer.request(
            StepRequest(
                index=index,
                ts=1.7e9 + index,
                kind=call.provider.kind,
                provider=call.provider.name,
                match_key=call.key,
                head=call.request.head,
                model=asked.model,
                thread=place.thread,
                sketch=str(sketch_of(asked, call.provider)),
            ),
            call.request.body,
        )
        reading = Reading(model=answered.model, said=said_of(answered), error=answered.error)
        response = StepResponse(ending=Ending.COMPLETE, head=exchange.response.head, ms=500.0, reading=reading)
        writer.response(index, response, exchange.response.body)
    writer.end(ended=1.7e9 + 100, exit_code=0, redactions=0, remarks=())


@pytest.mark.parametrize("command", ["bisect", "diff"])
@pytest.mark.parametrize(("one", "other"), [("dbos-agents", "temporal-agents"), ("dbos-retry", "prefect-retry")])
def test_runs_that_differ_in_ids_and_times_alone_are_the_same(home: Path, command: str, one: str, other: str) -> None:
    assert run([command, one, other, "--home", str(home)]) == ExitCode.OK


@pytest.mark.parametrize(
    ("good", "bad", "call", "cause"),
    [
        ("dbos-agents", "prefect-agents", 3, "tools"),
        ("dbos-complex", "temporal-complex", 2, "sampling"),
        ("haiku", "opus", 0, "model"),
    ],
)
def test_runs_that_part_are_told_where_and_why(
    home: Path, capfd: pytest.CaptureFixture[str], good: str, bad: str, call: int, cause: str
) -> None:
    assert run(["diff", good, bad, "--home", str(home)]) == ExitCode.DIFFERENT
    assert run(["bisect", good, bad, "--exact-words", "--home", str(home)]) == ExitCode.DIFFERENT
    capfd.readouterr()
    assert run(["bisect", good, bad, "--exact-words", "--json", "--home", str(home)]) == ExitCode.DIFFERENT
    found = json.loads(capfd.readouterr().out)
    assert found["step"] == {"good": call + 1, "bad": call + 1}
    assert found["causes"][0]["kind"] == cause
