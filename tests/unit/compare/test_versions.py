"""What two runs stood on: versions from the headers that SDKs send, code and lock files from their surroundings."""

from dataclasses import replace
from typing import Any

import pytest

from rewind.compare.versions import VersionChange, changed_locks, changed_versions, same_code, versions_of
from rewind.model.http import Headers
from rewind.model.session import Recording, Session, Status, Surroundings
from rewind.model.step import Step
from unit.store.making import request, start

COMMIT = Surroundings(commit="a" * 40, dirty=False)


def run(*calls: Headers, provider: str = "openai_chat") -> Recording:
    """A run that made calls with these headers."""
    steps = []
    for index, headers in enumerate(calls, 1):
        asked = request(index, provider=provider)
        steps.append(Step(request=replace(asked, head=replace(asked.head, headers=headers)), response=None))
    session = Session(start=start(), end=None, status=Status.RUNNING, folder="")
    return Recording(session=session, steps=tuple(steps))


def stainless(agent: str, language: str, version: str, runtime: str, running: str) -> Headers:
    return (
        ("User-Agent", agent),
        ("X-Stainless-Lang", language),
        ("X-Stainless-Package-Version", version),
        ("X-Stainless-OS", "Linux"),
        ("X-Stainless-Runtime", runtime),
        ("X-Stainless-Runtime-Version", running),
        ("X-Stainless-Retry-Count", "0"),
    )


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (
            stainless("Anthropic/Python 0.84.0", "python", "0.84.0", "CPython", "3.11.9"),
            {"anthropic (python)": "0.84.0", "python": "3.11.9"},
        ),
        (
            stainless("AsyncAnthropicBedrock/Python 0.84.0", "python", "0.84.0", "CPython", "3.11.9"),
            {"anthropic (python)": "0.84.0", "python": "3.11.9"},
        ),
        (
            stainless("AsyncAzureOpenAI/Python 2.15.0", "python", "2.15.0", "PyPy", "3.10.1"),
            {"openai (python)": "2.15.0", "pypy": "3.10.1"},
        ),
        (stainless("OpenAI/JS 6.1.0", "js", "6.1.0", "node", "v20.11.0"), {"node": "20.11.0", "openai (js)": "6.1.0"}),
        (
            stainless("AsyncGroq/Python 0.11.0", "python", "0.11.0", "CPython", "3.12.1"),
            {"groq (python)": "0.11.0", "python": "3.12.1"},
        ),
        (
            stainless("pydantic-ai/1.44.0", "python", "2.15.0", "CPython", "3.12.1"),
            {"openai (python)": "2.15.0", "pydantic-ai": "1.44.0", "python": "3.12.1"},
        ),
        (stainless("Anthropic/JS 0.71.2", "js", "0.71.2", "unknown", "unknown"), {"anthropic (js)": "0.71.2"}),
        (
            (
                ("user-agent", "google-genai-sdk/2.1.0 gl-python/3.12.13"),
                ("x-goog-api-client", "google-genai-sdk/2.1.0 gl-python/3.12.13"),
            ),
            {"google-genai": "2.1.0", "python": "3.12.13"},
        ),
        (
            (("x-goog-api-client", "google-genai-sdk/1.38.0 gl-node/v25.2.1"),),
            {"google-genai": "1.38.0", "node": "25.2.1"},
        ),
        (
            (
                (
                    "User-Agent",
                    "Boto3/1.35.0 md/Botocore#1.35.1 ua/2.0 os/linux#6.1 md/arch#x86_64 lang/python#3.11.9 "
                    "md/pyimpl#CPython m/b,Z cfg/retry-mode#legacy Botocore/1.35.1",
                ),
            ),
            {"boto3": "1.35.0", "botocore": "1.35.1", "python": "3.11.9"},
        ),
        (
            (("User-Agent", "aws-sdk-js/3.600.0 ua/2.1 os/linux#5.10 lang/js md/nodejs#20.11.0 m/E,N"),),
            {"aws-sdk-js": "3.600.0", "node": "20.11.0"},
        ),
        ((("User-Agent", "python-httpx/0.28.1"),), {"httpx": "0.28.1"}),
        ((("User-Agent", "python-requests/2.34.2"),), {"requests": "2.34.2"}),
        ((("User-Agent", "Python-urllib/3.11"),), {"python": "3.11"}),
        ((("User-Agent", "Python/3.11 aiohttp/3.14.5"),), {"aiohttp": "3.14.5", "python": "3.11"}),
        (
            (("User-Agent", "ollama-python/0.3.1 (x86_64 linux) Python/3.11.9"),),
            {"ollama-python": "0.3.1", "python": "3.11.9"},
        ),
        ((("User-Agent", "Mozilla/5.0 (X11; rv:1/2.0) AppleWebKit/537.36 Chrome/120.0 Safari/537.36"),), {}),
        ((("User-Agent", "Go-http-client/1.1"),), {}),
        ((("User-Agent", "node"),), {}),
        ((("User-Agent", ""),), {}),
        ((), {}),
    ],
)
def test_what_clients_say_of_themselves(headers: Headers, expected: dict[str, str]) -> None:
    assert versions_of(run(headers)) == expected


def test_a_framework_with_its_own_name_does_not_hide_the_sdk() -> None:
    headers = stainless("my-framework/1.0", "python", "0.84.0", "CPython", "3.11.9")
    assert versions_of(run(headers, provider="anthropic"))["anthropic (python)"] == "0.84.0"
    assert versions_of(run(headers, provider="cohere"))["sdk (python)"] == "0.84.0"


def test_a_run_of_several_processes_has_all_their_versions() -> None:
    one = (("User-Agent", "python-httpx/0.27.0 Python/3.11"),)
    other = (("User-Agent", "python-httpx/0.28.1 Python/3.11.9"),)
    assert versions_of(run(one, other, one)) == {"httpx": "0.27.0, 0.28.1", "python": "3.11.9"}


def test_only_what_both_runs_used_can_have_changed() -> None:
    before = {"anthropic (python)": "0.84.0", "python": "3.11.9", "requests": "2.31.0"}
    after = {"anthropic (python)": "0.85.0", "python": "3.11.9", "httpx": "0.28.1"}
    assert changed_versions(before, after) == (
        VersionChange(name="anthropic (python)", before="0.84.0", after="0.85.0"),
    )
    assert changed_versions(before, before) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({}, {}, True),
        ({}, {"commit": "b" * 40}, False),
        ({}, {"commit": None}, None),
        ({}, {"dirty": None}, None),
        ({}, {"dirty": True, "changes": "sc1:1"}, False),
        ({"dirty": True, "changes": "sc1:1"}, {"dirty": True, "changes": "sc1:1"}, True),
        ({"dirty": True, "changes": "sc1:1"}, {"dirty": True, "changes": "sc1:2"}, False),
        ({"dirty": True, "changes": "sc1:1"}, {"dirty": True}, None),
    ],
)
def test_the_same_code_is_the_same_commit_with_the_same_changes(
    one: dict[str, Any], other: dict[str, Any], same: bool | None
) -> None:
    first, second = replace(COMMIT, **one), replace(COMMIT, **other)
    assert same_code(first, second) is same
    assert same_code(second, first) is same


def test_code_that_nobody_looked_up_is_neither_the_same_nor_another() -> None:
    assert same_code(COMMIT, None) is None
    assert same_code(None, None) is None


def test_lock_files_differ_by_content_or_by_being_there() -> None:
    one = Surroundings(locks={"uv.lock": "1", "go.sum": "2", "yarn.lock": "3"})
    other = Surroundings(locks={"uv.lock": "9", "go.sum": "2", "Cargo.lock": "4"})
    assert changed_locks(one, other) == ("Cargo.lock", "uv.lock", "yarn.lock")
    assert changed_locks(one, one) == ()
    assert changed_locks(one, None) == ()
