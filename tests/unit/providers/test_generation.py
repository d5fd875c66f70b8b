"""APIs with a prompt and a text, and OpenAI's Assistants: what the examples of ``docs/providers.md`` do not say."""

from typing import Any

import pytest

from rewind.model.http import Headers, HttpResponse
from rewind.model.message import Answered, Asked, Media, Message, Other, Role, Text, ToolResult, ToolUse, Vectors
from rewind.model.usage import Usage
from rewind.providers.catalogue import identify
from support.exchanges import answer_with, request_of, stream_of

HUGGING_FACE = "api-inference.huggingface.co"
GOOGLE = "us-central1-aiplatform.googleapis.com"


def asked(target: str, body: Any, host: str = "llm.example", headers: Headers = ()) -> tuple[str, Asked]:
    request = request_of(body, target=target, host=host, headers=headers)
    api = identify(request.head)
    return api.name, api.reader.asked(request)


def answered(target: str, response: HttpResponse, host: str = "llm.example", headers: Headers = ()) -> Answered:
    request = request_of({}, target=target, host=host, headers=headers)
    return identify(request.head).reader.answered(request, response)


@pytest.mark.parametrize(
    ("target", "host", "name"),
    [
        ("/v1/complete", "api.anthropic.com", "anthropic-complete"),
        ("/v1/complete", "shop.example", "http"),
        ("/complete", "api.aleph-alpha.com", "aleph-alpha"),
        ("/complete", "shop.example", "http"),
        ("/v1/generate", "api.cohere.ai", "cohere-generate"),
        ("/generate", "shop.example", "http"),
        ("/models/org/name", HUGGING_FACE, "huggingface"),
        ("/models/org/name/v1/chat/completions", HUGGING_FACE, "openai-chat"),
        ("/hf-inference/models/org/name/pipeline/feature-extraction", "router.huggingface.co", "huggingface"),
        ("/", "abc.us-east-1.aws.endpoints.huggingface.cloud", "huggingface"),
        ("/", "shop.example", "http"),
        ("/endpoints/e/invocations", "runtime.sagemaker.eu-west-1.amazonaws.com", "sagemaker"),
        ("/v1/models/meta/llama/predictions", "api.replicate.com", "replicate"),
        ("/v1beta/models/imagen-4:predict", "generativelanguage.googleapis.com", "google-predict"),
        ("/v1beta/models/gemini-2.5-pro:generateContent", "generativelanguage.googleapis.com", "gemini"),
        ("/v1/chat", "api.writer.com", "openai-chat"),
        ("/v1/chat", "shop.example", "http"),
        ("/ml/v1/text/chat", "eu-de.ml.cloud.ibm.com", "openai-chat"),
        ("/ml/v1/deployments/d/text/chat_stream", "eu-de.ml.cloud.ibm.com", "openai-chat"),
        ("/ml/v1-beta/text/generation", "eu-de.ml.cloud.ibm.com", "watsonx"),
        ("/v1/threads/runs", "api.openai.com", "openai-assistants"),
        ("/openai/threads/t/runs/r/submit_tool_outputs", "x.openai.azure.com", "openai-assistants"),
        ("/v1/threads/t/messages", "api.openai.com", "http"),
    ],
)
def test_who_reads_what(target: str, host: str, name: str) -> None:
    assert asked(target, {}, host)[0] == name


def test_a_gateway_before_anthropic_is_known_by_the_header() -> None:
    assert asked("/v1/complete", {}, headers=(("anthropic-version", "2023-06-01"),))[0] == "anthropic-complete"


def test_a_prompt_with_turns_is_the_conversation_it_writes_down() -> None:
    prompt = "Be kind.\n\nHuman: Hi\n\nAssistant: Hello.\n\nHuman: And?\n\nAssistant:"
    _, read = asked("/v1/complete", {"model": "m", "prompt": prompt}, "api.anthropic.com")
    assert read.system == (Text("Be kind."),)
    assert [(turn.role, turn.text) for turn in read.messages] == [
        (Role.USER, "Hi"),
        (Role.ASSISTANT, "Hello."),
        (Role.USER, "And?"),
    ]


def test_pieces_that_repeat_what_came_before_are_read_once() -> None:
    pieces = [{"completion": text, "stop_reason": None} for text in (" I", " I look", " I look.")]
    for version, text in (("2023-01-01", " I look."), ("2023-06-01", " I I look I look.")):
        headers = (("anthropic-version", version),)
        assert answered("/v1/complete", stream_of(*pieces), headers=headers).text == text


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ([{"summary_text": "Short."}], (Text("Short."),)),
        ([{"translation_text": "Hallo"}], (Text("Hallo"),)),
        ({"answer": "Oslo", "score": 0.9, "start": 1, "end": 4}, (Text("Oslo"),)),
        ({"text": "spoken words"}, (Text("spoken words"),)),
        ([[{"label": "POSITIVE", "score": 0.9}]], (Other("label", {"label": "POSITIVE", "score": 0.9}),)),
        ([0.25, 0.5, 1], (Vectors(1, 3),)),
        ([[0.25, 0.5], [1, 2]], (Vectors(2, 2),)),
    ],
)
def test_what_tasks_of_hugging_face_give(document: Any, parts: Any) -> None:
    assert answered("/models/m", answer_with(document), HUGGING_FACE).parts == parts


def test_several_texts_of_a_task_are_alternatives() -> None:
    read = answered("/models/m", answer_with([{"generated_text": "a"}, {"generated_text": "b"}]), HUGGING_FACE)
    assert (read.text, read.alternatives) == ("a", ((Text("b"),),))


def test_vectors_belong_to_no_conversation() -> None:
    path = "/hf-inference/models/org/name/pipeline/feature-extraction"
    _, read = asked(path, {"inputs": ["a", "b"]}, "router.huggingface.co")
    assert (read.embeds, read.model, len(read.messages)) == (True, "org/name", 2)


def test_an_endpoint_that_speaks_openai_s_shape_is_read_as_such() -> None:
    host, target = "runtime.sagemaker.us-east-1.amazonaws.com", "/endpoints/my-llm/invocations"
    body = {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}], "max_tokens": 5}
    _, read = asked(target, body, host)
    assert read == Asked(
        model="my-llm", system=(Text("S"),), messages=(Message(Role.USER, (Text("Hi"),)),), parameters={"max_tokens": 5}
    )
    whole = {"choices": [{"message": {"content": "Yes."}}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    back = answered(target, answer_with(whole), host)
    assert (back.text, back.usage) == ("Yes.", Usage(input=3, output=2))


def test_watsonx_chat_has_its_model_under_another_name() -> None:
    body = {"model_id": "ibm/granite", "messages": [{"role": "user", "content": "Hi"}], "project_id": "p"}
    _, read = asked("/ml/v1/text/chat_stream", body, "us-south.ml.cloud.ibm.com")
    assert (read.model, read.streamed, read.parameters) == ("ibm/granite", True, {"project_id": "p"})


def test_a_prediction_that_has_only_begun_says_so() -> None:
    begun = {"id": "p1", "status": "starting", "output": None, "error": None}
    read = answered("/v1/predictions", answer_with(begun, status=201), "api.replicate.com")
    assert (read.id, read.stop, read.parts, read.error) == ("p1", "starting", (), None)
    failed = {"id": "p1", "status": "failed", "output": None, "error": "out of memory"}
    assert answered("/v1/predictions", answer_with(failed), "api.replicate.com").error == "out of memory"
    pieces = {"id": "p1", "status": "succeeded", "output": ["Ye", "s."]}
    assert answered("/v1/predictions", answer_with(pieces), "api.replicate.com").text == "Yes."
    pictured = {"id": "p1", "status": "succeeded", "output": ["https://a.example/1.png"]}
    assert answered("/v1/predictions", answer_with(pictured), "api.replicate.com").text == "https://a.example/1.png"


def test_pictures_texts_and_vectors_of_google_s_predict() -> None:
    target = "/v1/projects/p/locations/l/publishers/google/models/x:predict"

    def read(*predictions: Any, **more: Any) -> Answered:
        return answered(target, answer_with({"predictions": predictions, **more}), GOOGLE)

    (picture,) = read({"mimeType": "image/png", "bytesBase64Encoded": "aGk="}).parts
    assert isinstance(picture, Media) and (picture.kind, picture.size) == ("image", 2)
    assert read({"content": "Yes."}).text == "Yes."
    assert read({"embeddings": {"values": [1, 2, 3]}}).parts == (Vectors(1, 3),)
    assert read({"raiFilteredReason": "blocked: 39322892"}).stop == "blocked: 39322892"


# ── Assistants ───────────────────────────────────────────────────────────────────────────────────────────────

RUNS = "/v1/threads/thread_1/runs"


def test_results_of_tools_go_on_with_a_thread_that_the_provider_keeps() -> None:
    body = {"tool_outputs": [{"tool_call_id": "call_1", "output": "cold"}], "stream": True}
    _, read = asked(f"{RUNS}/run_1/submit_tool_outputs", body)
    assert (read.history, read.streamed) == ("thread_1", True)
    assert read.messages == (Message(Role.TOOL, (ToolResult("call_1", (Text("cold"),)),)),)


def test_a_streamed_run_says_its_message_and_counts_its_tokens() -> None:
    run = {"id": "run_1", "object": "thread.run", "model": "gpt-4o", "status": "in_progress", "usage": None}
    delta = {"id": "msg_1", "object": "thread.message.delta"}
    words = ({"content": [{"index": 0, "type": "text", "text": {"value": text}}]} for text in ("It is ", "cold."))
    read = answered(
        RUNS,
        stream_of(
            {"id": "thread_1", "object": "thread"},
            run,
            *({**delta, "delta": one} for one in words),
            {**run, "status": "completed", "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
            end=b"event: done\ndata: [DONE]\n\n",
        ),
    )
    assert read == Answered(
        id="run_1", model="gpt-4o", parts=(Text("It is cold."),), stop="completed", usage=Usage(input=9, output=4)
    )


def test_a_run_that_failed_says_why_and_one_that_waits_asks_for_tools() -> None:
    failed = {"id": "run_1", "object": "thread.run", "status": "failed", "last_error": {"message": "Sorry."}}
    assert answered(RUNS, answer_with(failed)).error == "Sorry."
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    action = {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [call]}}
    waits = {"id": "run_1", "object": "thread.run", "status": "requires_action", "required_action": action}
    assert answered(RUNS, answer_with(waits)).tool_uses == (ToolUse("call_1", "look", {"a": 1}),)
