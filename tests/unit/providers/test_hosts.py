"""Which hosts are recorded, and which addresses the user's variables name."""

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewind.providers import hosts
from rewind.providers.hosts import (
    KNOWN_HOSTS,
    LLM_HOSTS,
    Endpoint,
    HostRules,
    endpoints_from_environment,
    hosts_from_environment,
)

HOOKS = Path(hosts.__file__).parents[1] / "gateway" / "hooks"
CASES = [
    ("api.openai.com", "api.openai.com", True),
    ("api.openai.com", "xapi.openai.com", False),
    ("api.openai.com", "api.openai.com.evil.test", False),
    ("*.openai.azure.com", "mine.openai.azure.com", True),
    ("*.openai.azure.com", "openai.azure.com", False),
    ("bedrock-runtime.*.amazonaws.com", "bedrock-runtime.us-east-1.amazonaws.com", True),
    ("bedrock-runtime.*.amazonaws.com", "s3.us-east-1.amazonaws.com", False),
    ("*-aiplatform.googleapis.com", "us-central1-aiplatform.googleapis.com", True),
    ("a*a", "a", False),
    ("a*b*a", "aba", True),
    ("a*b*a", "aa", False),
    ("*", "anything.at.all", True),
]


@pytest.mark.parametrize(("pattern", "host", "expected"), CASES)
def test_a_star_stands_for_any_characters(pattern: str, host: str, expected: bool) -> None:
    assert hosts.matches(pattern, host) is expected


@given(st.text("ab.*", max_size=8), st.text("ab.", max_size=8))
@example("*a*", "a")
def test_matching_agrees_with_fnmatch(pattern: str, host: str) -> None:
    assert hosts.matches(pattern, host) == fnmatchcase(host, pattern)


@given(st.text("ab.*", max_size=8), st.text("ab.", max_size=8))
def test_the_python_hook_matches_as_we_do(pattern: str, host: str) -> None:
    assert PYTHON_HOOK(pattern, host) == hosts.matches(pattern, host)


@pytest.mark.process
def test_the_node_hook_matches_as_we_do() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    source = (HOOKS / "node" / "preload.cjs").read_text()
    function = source[source.index("function matches") :]
    function = function[: function.index("\n}\n") + 2]
    cases = json.dumps([[pattern, host] for pattern, host, _ in CASES])
    code = f"{function} console.log(JSON.stringify({cases}.map(([pattern, host]) => matches(pattern, host))))"
    answered = subprocess.run([node, "-e", code], capture_output=True, check=True, timeout=20).stdout
    assert json.loads(answered) == [expected for _, _, expected in CASES]


def _python_hook_matches() -> Callable[[str, str], bool]:
    spec = importlib.util.spec_from_file_location("the_hook", HOOKS / "python" / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    source = (HOOKS / "python" / "sitecustomize.py").read_text()
    # Everything but its last lines, which act on this process.
    exec(compile(source[: source.index("\nif PORT.isdigit()")], "sitecustomize.py", "exec"), module.__dict__)
    found: Callable[[str, str], bool] = module.matches
    return found


PYTHON_HOOK = _python_hook_matches()


@pytest.mark.parametrize(
    "host",
    [
        "api.openai.com",
        "API.OpenAI.com.",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "aiplatform.googleapis.com",
        "europe-west4-aiplatform.googleapis.com",
        "bedrock-runtime.eu-central-1.amazonaws.com",
        "contoso.openai.azure.com",
        "contoso.services.ai.azure.com",
        "api.mistral.ai",
        "api.groq.com",
        "openrouter.ai",
        "router.huggingface.co",
        "models.github.ai",
        "dashscope-intl.aliyuncs.com",
        "ai-gateway.vercel.sh",
    ],
)
def test_known_apis_are_recorded(host: str) -> None:
    assert HostRules(LLM_HOSTS).records(host)


@pytest.mark.parametrize(
    "host", ["openai.com", "github.com", "pypi.org", "storage.googleapis.com", "s3.amazonaws.com", "", "localhost"]
)
def test_other_hosts_are_not_recorded(host: str) -> None:
    assert not HostRules(LLM_HOSTS).records(host)


def test_with_all_hosts_every_host_is_recorded() -> None:
    assert HostRules((), all_hosts=True).records("bank.example.com")


def test_each_known_pattern_is_listed_once_in_lower_case_with_its_vendor() -> None:
    assert len(set(LLM_HOSTS)) == len(LLM_HOSTS)
    assert all(known.pattern == known.pattern.lower() and known.vendor for known in KNOWN_HOSTS)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("OPENAI_BASE_URL", "https://llm.corp.example/v1", Endpoint("https", "llm.corp.example", 443)),
        ("OPENAI_BASE_URL", "http://localhost:8000/v1", Endpoint("http", "localhost", 8000)),
        ("OPENAI_API_BASE", "http://[::1]:8000", Endpoint("http", "::1", 8000)),
        ("AZURE_OPENAI_ENDPOINT", "https://Mine.openai.azure.com/", Endpoint("https", "mine.openai.azure.com", 443)),
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://10.0.0.9:8443", Endpoint("https", "10.0.0.9", 8443)),
        ("ANTHROPIC_BASE_URL", "https://user:secret@proxy.example/x", Endpoint("https", "proxy.example", 443)),
        ("OLLAMA_HOST", "0.0.0.0", Endpoint("http", "127.0.0.1", 11434)),
        ("OLLAMA_HOST", ":11435", Endpoint("http", "127.0.0.1", 11435)),
        ("OLLAMA_HOST", "gpu.lan", Endpoint("http", "gpu.lan", 11434)),
        ("OLLAMA_HOST", "http://gpu.lan", Endpoint("http", "gpu.lan", 80)),
    ],
)
def test_addresses_in_variables_are_found(name: str, value: str, expected: Endpoint) -> None:
    assert endpoints_from_environment({name: value}) == (expected,)
    assert hosts_from_environment({name: value}) == (expected.host,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
        ("LANGFUSE_BASE_URL", "https://cloud.langfuse.com"),
        ("S3_ENDPOINT", "http://minio:9000"),
        ("MY_ENDPOINT", "production"),
        ("OPENAI_BASE_URL", ""),
        ("OPENAI_BASE_URL", "http://[::1"),
        ("OPENAI_BASE_URL", "http://host:99999999"),
        ("OPENAI_BASE_URL", "unix:///run/llm.sock"),
        ("OPENAI_BASE_URL", "http://*/"),
        ("OPENAI_BASE_URL", "."),
        ("OPENAI_API_KEY", "https://not.an.address"),
    ],
)
def test_what_names_no_model_server_is_left_alone(name: str, value: str) -> None:
    assert endpoints_from_environment({name: value}) == ()


@given(st.dictionaries(st.sampled_from(["OPENAI_BASE_URL", "OLLAMA_HOST", "X_ENDPOINT"]), st.text()))
def test_no_value_of_a_variable_is_an_error(env: dict[str, str]) -> None:
    for endpoint in endpoints_from_environment(env):
        assert endpoint.host
        assert 0 <= endpoint.port < 65536
