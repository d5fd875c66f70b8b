"""One conversation as each API that can be edited is asked, and where it keeps what."""

import json
from dataclasses import dataclass
from typing import Any

from rewind.edit.edits import parse_edit
from rewind.model.http import HttpRequest
from rewind.model.message import Asked
from rewind.providers.catalogue import identify
from support.exchanges import request_of

SYSTEM = "Answer in one line."
QUESTION = "How warm is it in Oslo, and in Rome?"
OSLO, ROME = "4 degrees", "21 degrees"


@dataclass(frozen=True, slots=True)
class Api:
    """An API that can be edited."""

    name: str
    target: str
    body: dict[str, Any]
    host: str = "llm.example"
    last_user: int = 0
    """Where the user's first question stands among its messages."""
    parameter: str = "temperature"
    """The API's own name of the temperature."""

    def request(self, **more: Any) -> HttpRequest:
        return request_of(self.body | more, target=self.target, host=self.host)

    def __str__(self) -> str:
        return self.name


def _calls() -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"city": city})},
        }
        for number, (name, city) in enumerate((("weather", "Oslo"), ("clock", "Rome")))
    ]


CHAT_MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": None, "tool_calls": _calls()},
    {"role": "tool", "tool_call_id": "call_0", "content": OSLO},
    {"role": "tool", "tool_call_id": "call_1", "content": ROME},
]
CHAT: dict[str, Any] = {"model": "model-x", "temperature": 0.5, "messages": CHAT_MESSAGES, "top_p": 1}
ANTHROPIC: dict[str, Any] = {
    "model": "model-x",
    "max_tokens": 100,
    "temperature": 0.5,
    "system": SYSTEM,
    "messages": [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_0", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "call_1", "name": "clock", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_0", "content": OSLO},
                {"type": "tool_result", "tool_use_id": "call_1", "content": ROME},
            ],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "model-x",
    "temperature": 0.5,
    "instructions": SYSTEM,
    "input": [
        {"role": "user", "content": QUESTION},
        {"type": "function_call", "call_id": "call_0", "name": "weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call", "call_id": "call_1", "name": "clock", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "call_0", "output": OSLO},
        {"type": "function_call_output", "call_id": "call_1", "output": ROME},
    ],
}
GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": SYSTEM}]},
    "contents": [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}},
                {"functionCall": {"name": "clock", "args": {"city": "Rome"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "weather", "response": {"result": OSLO}}},
                {"functionResponse": {"name": "clock", "response": {"result": ROME}}},
            ],
        },
    ],
    "generationConfig": {"temperature": 0.5},
}
OLLAMA: dict[str, Any] = {
    "model": "model-x",
    "options": {"temperature": 0.5},
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
                {"function": {"name": "clock", "arguments": {"city": "Rome"}}},
            ],
        },
        {"role": "tool", "tool_name": "weather", "content": OSLO},
        {"role": "tool", "tool_name": "clock", "content": ROME},
    ],
}

OPENAI_CHAT = Api("openai chat", "/v1/chat/completions", CHAT, last_user=1)
APIS = (
    OPENAI_CHAT,
    Api("groq", "/openai/v1/chat/completions", CHAT, host="api.groq.com", last_user=1),
    Api(
        "azure",
        "/openai/deployments/model-x/chat/completions?api-version=2024-10-21",
        {key: value for key, value in CHAT.items() if key != "model"},
        last_user=1,
    ),
    Api("cohere", "/v2/chat", CHAT, host="api.cohere.com", last_user=1),
    Api("ollama", "/api/chat", OLLAMA, last_user=1),
    Api("anthropic", "/v1/messages", ANTHROPIC),
    Api(
        "anthropic on vertex",
        "/v1/projects/p/locations/l/publishers/anthropic/models/model-x:rawPredict",
        {key: value for key, value in ANTHROPIC.items() if key != "model"} | {"anthropic_version": "vertex-2023-10-16"},
    ),
    Api("responses", "/v1/responses", RESPONSES),
    Api("gemini", "/v1beta/models/model-x:generateContent", GEMINI),
    Api("gemini stream", "/v1beta/models/model-x:streamGenerateContent?alt=sse", GEMINI),
    Api(
        "code assist",
        "/v1internal:generateContent",
        {"model": "model-x", "project": "p", "user_prompt_id": "u", "request": GEMINI},
    ),
)


def asked(request: HttpRequest) -> Asked:
    return identify(request.head).reader.asked(request)


def document(request: HttpRequest) -> Any:
    return json.loads(request.body)


def edits(*texts: str) -> list[Any]:
    return [parse_edit(text) for text in texts]
