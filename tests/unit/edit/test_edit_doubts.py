"""Edits that look like a mistake are noticed before they cost anything; what an API may take is let through."""

from collections.abc import Iterable

import anthropic.types.beta.message_create_params as anthropic_types
import openai.types.chat.completion_create_params as chat_types
import openai.types.completion_create_params as completion_types
import openai.types.responses.response_create_params as responses_types
import pytest
from google.genai.types import GenerationConfig

from rewind.edit.doubts import doubts_about
from rewind.providers.anthropic.patch import PARAMETERS as ANTHROPIC_PARAMETERS
from rewind.providers.gemini.patch import PARAMETERS as GEMINI_PARAMETERS
from rewind.providers.openai_chat.patch import PARAMETERS as CHAT_PARAMETERS
from rewind.providers.openai_responses.patch import PARAMETERS as RESPONSES_PARAMETERS
from rewind.providers.shared.parameters import ParameterTable
from rewind.providers.shared.patch import camel
from support.exchanges import request_of
from unit.edit.asking import APIS, CHAT, GEMINI, OPENAI_CHAT, Api, edits

every_api = pytest.mark.parametrize("api", APIS, ids=str)


def doubts(api: Api, edit: str, **more: object) -> list[tuple[str, str]]:
    return [(doubt.reason, doubt.suggestion) for doubt in doubts_about(api.request(**more), edits(edit))]


@every_api
def test_a_slip_of_the_pen_is_noticed_and_what_was_meant_is_named(api: Api) -> None:
    [(reason, meant)] = doubts(api, "sytem=x")
    assert "no parameter sytem" in reason
    assert meant.startswith("system")
    [(_, meant)] = doubts(api, f"{api.parameter.replace('temperature', 'temprature')}=0")
    assert meant == f"{api.parameter}="
    assert doubts(api, "mesages=[]")[0][1] == "messages[i]="
    assert doubts(api, "sytem=") != [], "taking out what nobody has is a slip, too"


@every_api
def test_a_value_of_another_kind_is_noticed(api: Api) -> None:
    [(reason, _)] = doubts(api, f"{api.parameter}=hot")
    assert f"{api.parameter} takes a number" in reason and "not hot" in reason
    for value in ('"0.5"', "true", "[1]", "-1"):
        assert len(doubts(api, f"{api.parameter}={value}")) == 1, value
    for value in ("0", "1", "0.5", "1.0", "null", ""):
        assert doubts(api, f"{api.parameter}={value}") == [], value


@pytest.mark.parametrize("api", [api for api in APIS if "request" not in api.body], ids=str)
def test_what_the_request_has_already_is_no_doubt(api: Api) -> None:
    for name in ("brand_new", "brand_new.depth", "another"):
        assert doubts(api, f"{name}=7", brand_new={"depth": 1}, another=3) == [], name


@every_api
def test_a_parameter_that_nobody_knows_is_doubted_without_a_guess(api: Api) -> None:
    [(reason, meant)] = doubts(api, "quantum_mode=7")
    assert "no parameter quantum_mode" in reason and meant == ""


@pytest.mark.parametrize(
    ("edit", "reason", "meant"),
    [
        ("user=42", "user takes a text, not 42.", 'user="42"'),
        ("seed=1.5", "seed takes a whole number, not 1.5.", ""),
        ("temperature=2.5", "temperature takes a number from 0 to 2, not 2.5.", ""),
        ("n=0", "n takes a whole number of at least 1, not 0.", ""),
        ("stop=7", "stop takes a text or a list, not 7.", ""),
        ("store=yes", "store takes true or false, not yes.", ""),
    ],
)
def test_the_reason_says_what_is_taken(edit: str, reason: str, meant: str) -> None:
    assert doubts(OPENAI_CHAT, edit) == [(reason, meant)]


def test_fields_of_an_object_that_nobody_lists_are_free() -> None:
    assert doubts(OPENAI_CHAT, "metadata.team=blue") == []
    assert doubts(OPENAI_CHAT, "stream_options.new=1") == []
    gemini = next(api for api in APIS if api.body is GEMINI)
    assert doubts(gemini, "generation_config.max_output_tokens=5") == []
    assert doubts(gemini, "generation_config.max_output_tokens=many") != []
    [(_, meant)] = doubts(gemini, "generationConfig.maxOutputTokns=5")
    assert meant == "generationConfig.maxOutputTokens="


def test_a_value_from_another_step_is_not_doubted() -> None:
    assert doubts_about(OPENAI_CHAT.request(), edits("quantum_mode=@7f3a:4")) == ()


def test_of_an_api_without_a_table_only_a_near_miss_is_doubted() -> None:
    request = request_of({"prompt": "Hi", "max_gen_len": 5}, target="/model/x/invoke", host="bedrock.example")
    assert doubts_about(request, edits("top_quark=1")) == ()
    [doubt] = doubts_about(request, edits("max_gen_length=7"))
    assert doubt.suggestion == "max_gen_len="


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (CHAT_PARAMETERS, chat_types.CompletionCreateParamsBase.__annotations__),
        (CHAT_PARAMETERS, completion_types.CompletionCreateParamsBase.__annotations__),
        (RESPONSES_PARAMETERS, responses_types.ResponseCreateParamsBase.__annotations__),
        (ANTHROPIC_PARAMETERS, anthropic_types.MessageCreateParamsBase.__annotations__),
        (GEMINI_PARAMETERS, [f"generationConfig.{camel(name)}" for name in GenerationConfig.model_fields]),
    ],
    ids=["chat", "completions", "responses", "anthropic", "gemini"],
)
def test_what_the_sdks_of_today_can_send_is_known(table: ParameterTable, names: Iterable[str]) -> None:
    assert set(names) <= set(table)
    assert set(CHAT) <= set(CHAT_PARAMETERS)
