"""What a cause is called, what would put it right, and what is ruled out."""

from typing import Any

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import bisect
from rewind.compare.phrases import cause_title
from rewind.compare.remedy import remedies
from rewind.model.step import Ending
from unit.compare.chats import Chat, Tape, sketched

OPENAI = "api.openai.com"


def responses(*calls: tuple[dict[str, Any], str]) -> Tape:
    """Calls to OpenAI's Responses API, each with what it says."""
    tape = Tape()
    for number, (request, says) in enumerate(calls, 1):
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": says}]}]
        answer = {"id": f"resp_{number}", "object": "response", "model": "gpt-4o", "output": output}
        tape.add({"model": "gpt-4o", **request}, answer, path="/v1/responses", host=OPENAI)
    return tape


def test_a_history_that_the_provider_held_and_that_was_lost_is_the_cause() -> None:
    first = ({"input": "My order is 8821."}, "Noted.")
    good = responses(first, ({"input": "Which one?", "previous_response_id": "resp_1"}, "It is 8821."))
    bad = responses(first, ({"input": "Which one?"}, "I cannot see any order. Which one do you mean?"))
    for a, b in ((good.run(), bad.run()), (sketched(good.run()), sketched(bad.run()))):
        finding = bisect(a, b)
        assert finding.step == (2, 2)
        assert [cause.kind for cause in finding.causes] == [CauseKind.HISTORY]
        assert CauseKind.HISTORY not in {one.kind for one in finding.ruled_out}


def test_a_history_that_was_not_recorded_is_not_ruled_out() -> None:
    good = responses(({"input": "Which one?", "previous_response_id": "resp_x"}, "It is 8821."))
    bad = responses(
        ({"input": "Which one?", "previous_response_id": "resp_y"}, "I cannot see any order. Which one do you mean?")
    )
    finding = bisect(good.run(), bad.run())
    assert CauseKind.HISTORY not in {one.kind for one in finding.ruled_out}
    assert CauseKind.INPUT in {one.kind for one in finding.ruled_out}


def test_input_and_model_are_not_ruled_out_where_no_request_has_any() -> None:
    good, bad = (
        responses(({"model": None}, "It is 8821.")),
        responses(({"model": None}, "I cannot see any order. Which one do you mean?")),
    )
    assert not {CauseKind.INPUT, CauseKind.MODEL, CauseKind.HISTORY} & {
        one.kind for one in bisect(good.run(), bad.run()).ruled_out
    }


def test_nothing_is_said_of_temperature_where_no_model_was_asked() -> None:
    def lookup(value: int) -> Tape:
        tape = Tape()
        tape.add({"q": 1}, {"value": value}, path="/lookup", host="example.com")
        return tape

    (cause,) = bisect(lookup(1).run(), lookup(2).run()).causes
    assert cause.kind is CauseKind.SAMPLING and cause.evidence == ""


def test_another_embedding_model_is_another_model() -> None:
    def embedded(model: str, value: float) -> Tape:
        tape = Tape()
        vectors = [{"object": "embedding", "index": 0, "embedding": [value, 0.2]}]
        answer = {"object": "list", "model": model, "data": vectors}
        tape.add({"model": model, "input": "hello"}, answer, path="/v1/embeddings", host=OPENAI)
        return tape

    finding = bisect(embedded("text-embedding-3-small", 0.1).run(), embedded("text-embedding-3-large", 0.5).run())
    assert [cause.kind for cause in finding.causes] == [CauseKind.MODEL]


def test_a_model_and_a_question_that_both_changed_are_both_named() -> None:
    tapes = []
    for model, question, says in (
        ("claude-opus-5", "Where is order 8821?", "It is on its way."),
        ("claude-haiku-4-5", "Tell me a joke about ducks.", "Quack, said the duck."),
    ):
        tape = Tape()
        Chat(tape, model=model).user(question).says(says)
        tapes.append(tape)
    assert {cause.kind for cause in bisect(tapes[0].run(), tapes[1].run()).causes} == {CauseKind.MODEL, CauseKind.INPUT}


def test_where_the_address_decides_no_edit_of_the_model_is_suggested() -> None:
    def deployed(name: str, says: str) -> Tape:
        tape = Tape()
        choice = {"index": 0, "message": {"role": "assistant", "content": says}, "finish_reason": "stop"}
        tape.add(
            {"messages": [{"role": "user", "content": "Hi"}]},
            {"id": "c", "object": "chat.completion", "model": name, "choices": [choice]},
            path=f"/openai/deployments/{name}/chat/completions?api-version=2024-06-01",
            host="x.openai.azure.com",
        )
        return tape

    finding = bisect(deployed("gpt-4o", "It costs 12.").run(), deployed("gpt-4o-mini", "It is free.").run())
    assert finding.causes[0].kind is CauseKind.MODEL
    assert remedies(finding) == ()


def test_a_refusal_by_rewind_is_a_miss_and_no_error_of_the_provider() -> None:
    good, bad = Tape(), Tape()
    Chat(good).user("It is 1763197200. Go?").says("Yes.")
    refused = Chat(bad).user("It is 1763283600. Go?")
    refused.fails(424, "No such call.", headers=(("x-rewind-miss", "No such call."),))
    titles = [cause_title(cause) for cause in bisect(good.run(), bad.run()).causes]
    assert titles == ["user input changed", "a miss: Rewind refused the call, since it was not recorded"]


def test_a_stream_that_was_refused_and_hung_up_on_is_a_try_and_named_by_its_status() -> None:
    good, retried, given_up = Tape(), Tape(), Tape()
    Chat(good).user("How much?").says("It is 12 euros.")
    Chat(retried).user("How much?").fails(429, "Slow down.", ending=Ending.CLIENT_CLOSED).says("It is 12 euros.")
    for _ in range(3):
        Chat(given_up).user("How much?").fails(429, "Slow down.", ending=Ending.CLIENT_CLOSED)
    assert not bisect(good.run(), retried.run()).diverges
    first = bisect(good.run(), given_up.run()).causes[0]
    assert cause_title(first) == "provider error: 429, where the good run got an answer"
    assert first.evidence == "tries: 1 in the good run, 3 in the bad one"


def test_another_embedding_model_is_why_other_passages_were_found() -> None:
    def run(model: str, passage: str, says: str) -> Tape:
        tape = Tape()
        vectors = [{"object": "embedding", "index": 0, "embedding": [len(model) / 100, 0.2]}]
        asked = {"model": model, "input": "returns"}
        tape.add(asked, {"object": "list", "model": model, "data": vectors}, path="/v1/embeddings", host=OPENAI)
        Chat(tape).user(f"Passages: {passage} Question: how long may I return it?").says(says)
        return tape

    good = run("text-embedding-3-small", "Returns are open for 28 days.", "It is 28 days.")
    bad = run("text-embedding-3-large", "Shoes may come back for 12 days.", "It is 12 days.")
    finding = bisect(good.run(), bad.run())
    assert finding.step == (2, 2)
    assert [cause.kind for cause in finding.causes] == [CauseKind.MODEL, CauseKind.INPUT]
    assert finding.causes[0].since.indexes == (1, 1)
