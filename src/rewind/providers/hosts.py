"""Which hosts are recorded: the LLM APIs known by name, and those the user's own variables name.

A pattern is a host name in which ``*`` stands for any characters, dots among them. The same few lines of matching
live in the two hooks (``gateway/hooks``), which may import nothing of ours; ``test_hosts.py`` holds the three together.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple
from urllib.parse import urlsplit

from rewind.dataclass import dataclass


class KnownHost(NamedTuple):
    """One pattern, and whose API answers there."""

    pattern: str
    vendor: str


KNOWN_HOSTS: tuple[KnownHost, ...] = (
    # The makers of models
    KnownHost("api.openai.com", "OpenAI"),
    KnownHost("*.api.openai.com", "OpenAI, regional (us, eu)"),
    KnownHost("api.anthropic.com", "Anthropic"),
    KnownHost("generativelanguage.googleapis.com", "Google Gemini API"),
    KnownHost("api.mistral.ai", "Mistral"),
    KnownHost("codestral.mistral.ai", "Mistral, code completion"),
    KnownHost("api.x.ai", "xAI Grok"),
    KnownHost("*.api.x.ai", "xAI Grok, regional"),
    KnownHost("api.deepseek.com", "DeepSeek"),
    KnownHost("api.cohere.com", "Cohere"),
    KnownHost("api.cohere.ai", "Cohere, older name"),
    KnownHost("api.ai21.com", "AI21 Jamba"),
    KnownHost("api.voyageai.com", "Voyage embeddings"),
    KnownHost("api.jina.ai", "Jina embeddings and rerankers"),
    KnownHost("api.perplexity.ai", "Perplexity Sonar"),
    KnownHost("api.reka.ai", "Reka"),
    KnownHost("api.writer.com", "Writer Palmyra"),
    KnownHost("api.aleph-alpha.com", "Aleph Alpha"),
    KnownHost("api.inceptionlabs.ai", "Inception Mercury"),
    KnownHost("api.upstage.ai", "Upstage Solar"),
    KnownHost("api.llama.com", "Meta Llama API"),
    KnownHost("api.moonshot.ai", "Moonshot Kimi"),
    KnownHost("api.moonshot.cn", "Moonshot Kimi, China"),
    KnownHost("api.z.ai", "Zhipu GLM"),
    KnownHost("open.bigmodel.cn", "Zhipu GLM, China"),
    KnownHost("dashscope.aliyuncs.com", "Alibaba Qwen"),
    KnownHost("dashscope-*.aliyuncs.com", "Alibaba Qwen, regional"),
    KnownHost("api.minimax.io", "MiniMax"),
    KnownHost("api.minimaxi.com", "MiniMax, China"),
    KnownHost("api.minimax.chat", "MiniMax, older name"),
    KnownHost("api.stepfun.com", "StepFun"),
    KnownHost("api.baichuan-ai.com", "Baichuan"),
    KnownHost("qianfan.baidubce.com", "Baidu Ernie"),
    KnownHost("api.hunyuan.cloud.tencent.com", "Tencent Hunyuan"),
    KnownHost("ark.*.volces.com", "ByteDance Doubao"),
    KnownHost("ark.*.bytepluses.com", "ByteDance Seed"),
    # The clouds
    KnownHost("*.openai.azure.com", "Azure OpenAI"),
    KnownHost("*.services.ai.azure.com", "Azure AI Foundry"),
    KnownHost("*.cognitiveservices.azure.com", "Azure OpenAI, resource name of the Cognitive Services kind"),
    KnownHost("*.models.ai.azure.com", "Azure AI, serverless deployments"),
    KnownHost("models.inference.ai.azure.com", "GitHub Models, older name"),
    KnownHost("*.inference.ml.azure.com", "Azure ML online endpoints"),
    KnownHost("aiplatform.googleapis.com", "Google Vertex AI, global"),
    KnownHost("*-aiplatform.googleapis.com", "Google Vertex AI, regional"),
    KnownHost("aiplatform.*.rep.googleapis.com", "Google Vertex AI, multi-region"),
    KnownHost("bedrock-runtime.*.amazonaws.com", "Amazon Bedrock"),
    KnownHost("bedrock-runtime-fips.*.amazonaws.com", "Amazon Bedrock, FIPS"),
    KnownHost("runtime.sagemaker.*.amazonaws.com", "Amazon SageMaker endpoints"),
    KnownHost("bedrock-agent-runtime.*.amazonaws.com", "Amazon Bedrock agents"),
    KnownHost("bedrock-runtime.*.amazonaws.com.cn", "Amazon Bedrock, China"),
    KnownHost("bedrock-mantle.*.api.aws", "Amazon Bedrock, OpenAI-compatible"),
    KnownHost("*.ml.cloud.ibm.com", "IBM watsonx.ai"),
    KnownHost("inference.generativeai.*.oci.oraclecloud.com", "Oracle generative AI"),
    KnownHost("models.github.ai", "GitHub Models"),
    KnownHost("api.githubcopilot.com", "GitHub Copilot"),
    KnownHost("api.*.githubcopilot.com", "GitHub Copilot, by plan"),
    # Those who run others' models
    KnownHost("api.groq.com", "Groq"),
    KnownHost("api.cerebras.ai", "Cerebras"),
    KnownHost("api.sambanova.ai", "SambaNova"),
    KnownHost("api.together.xyz", "Together"),
    KnownHost("api.together.ai", "Together, newer name"),
    KnownHost("api.fireworks.ai", "Fireworks"),
    KnownHost("integrate.api.nvidia.com", "NVIDIA NIM"),
    KnownHost("ai.api.nvidia.com", "NVIDIA NIM, by model"),
    KnownHost("router.huggingface.co", "Hugging Face inference providers"),
    KnownHost("api-inference.huggingface.co", "Hugging Face inference, older name"),
    KnownHost("*.endpoints.huggingface.cloud", "Hugging Face dedicated endpoints"),
    KnownHost("api.replicate.com", "Replicate"),
    KnownHost("api.deepinfra.com", "DeepInfra"),
    KnownHost("api.novita.ai", "Novita"),
    KnownHost("api.hyperbolic.xyz", "Hyperbolic"),
    KnownHost("api.siliconflow.cn", "SiliconFlow, China"),
    KnownHost("api.siliconflow.com", "SiliconFlow"),
    KnownHost("api.studio.nebius.com", "Nebius"),
    KnownHost("api.tokenfactory.nebius.com", "Nebius, newer name"),
    KnownHost("inference.baseten.co", "Baseten model APIs"),
    KnownHost("*.api.baseten.co", "Baseten deployments"),
    KnownHost("api.friendli.ai", "Friendli"),
    KnownHost("api.lambda.ai", "Lambda"),
    KnownHost("api.scaleway.ai", "Scaleway"),
    KnownHost("*.endpoints.kepler.ai.cloud.ovh.net", "OVHcloud AI endpoints"),
    KnownHost("api.kluster.ai", "kluster.ai"),
    KnownHost("llm.chutes.ai", "Chutes"),
    KnownHost("ollama.com", "Ollama cloud"),
    # Gateways before all of these
    KnownHost("openrouter.ai", "OpenRouter"),
    KnownHost("ai-gateway.vercel.sh", "Vercel AI Gateway"),
    KnownHost("gateway.ai.cloudflare.com", "Cloudflare AI Gateway"),
    KnownHost("opencode.ai", "opencode Zen"),
    KnownHost("api.portkey.ai", "Portkey"),
    KnownHost("ai-gateway.helicone.ai", "Helicone AI gateway"),
    KnownHost("gateway.helicone.ai", "Helicone, any provider"),
    KnownHost("oai.helicone.ai", "Helicone before OpenAI"),
    KnownHost("anthropic.helicone.ai", "Helicone before Anthropic"),
    KnownHost("api.requesty.ai", "Requesty"),
    KnownHost("router.requesty.ai", "Requesty router"),
    KnownHost("api.poe.com", "Poe"),
    KnownHost("api.venice.ai", "Venice"),
    KnownHost("api.aimlapi.com", "AI/ML API"),
    KnownHost("nano-gpt.com", "NanoGPT"),
    KnownHost("api.braintrust.dev", "Braintrust proxy"),
)

_MOST_REMEMBERED = 4096
LLM_HOSTS: tuple[str, ...] = tuple(known.pattern for known in KNOWN_HOSTS)


def matches(pattern: str, host: str) -> bool:
    """Whether the host fits the pattern; both in lower case. Linear in the host, no backtracking."""
    first, *rest = pattern.split("*")
    if not rest:
        return host == pattern
    *middle, last = rest
    if not host.startswith(first):
        return False
    at = len(first)
    for part in middle:
        found = host.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(host) - len(last) >= at and host.endswith(last)


def plain_name(host: str) -> str:
    """The host as patterns spell it: lower case, no brackets, no closing dot."""
    return host.lower().removeprefix("[").removesuffix("]").removesuffix(".")


@dataclass(frozen=True, slots=True)
class HostRules:
    """The hosts whose traffic is recorded."""

    patterns: tuple[str, ...]
    all_hosts: bool = False
    _known: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Hosts that were asked for: every request asks, and there are few of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", tuple(dict.fromkeys(map(plain_name, self.patterns))))

    def records(self, host: str) -> bool:
        recorded = self._known.get(host)
        if recorded is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            recorded = self._known[host] = self.all_hosts or self._matches(plain_name(host))
        return recorded

    def _matches(self, host: str) -> bool:
        return any(matches(pattern, host) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that a variable of the user's names."""

    scheme: str
    host: str
    port: int


OLLAMA_PORT = 11434
LOCAL_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("http", "localhost", OLLAMA_PORT),
    Endpoint("http", "127.0.0.1", OLLAMA_PORT),
)
"""Where a model server listens on this machine when no variable says so: Ollama's registered port."""

_NAME_ENDINGS = ("_BASE_URL", "_API_BASE", "_ENDPOINT", "_API_URL", "_API_HOST")
_EXACT_NAMES = frozenset(("OLLAMA_HOST", "OPENAI_BASE", "LLM_BASE", "HF_INFERENCE_ENDPOINT"))
_NAME_BEGINNINGS = ("AWS_ENDPOINT_URL_BEDROCK",)
_NOT_A_MODEL = (
    # These end like the above and never lead to a model. Recording them would make telemetry part of the run, with
    # batches and times that differ in each replay; or bring a database or a file store to an HTTP gateway.
    ("OTEL_", "OpenTelemetry"),
    ("OTLP_", "OpenTelemetry"),
    ("TRACELOOP_", "OpenLLMetry"),
    ("LANGFUSE_", "Langfuse traces"),
    ("LANGSMITH_", "LangSmith traces"),
    ("LANGCHAIN_", "LangSmith traces, older name"),
    ("PHOENIX_", "Arize Phoenix traces"),
    ("OPIK_", "Opik traces"),
    ("WANDB_", "Weights & Biases"),
    ("MLFLOW_", "MLflow"),
    ("SENTRY_", "error reports"),
    ("POSTHOG_", "analytics"),
    ("DD_", "Datadog"),
    ("S3_", "object storage"),
    ("AWS_S3_", "object storage"),
    ("MINIO_", "object storage"),
    ("AZURE_STORAGE_", "object storage"),
    ("BLOB_", "object storage"),
    ("REDIS_", "a database"),
    ("ELASTIC_", "a database"),
    ("QDRANT_", "a database"),
    ("DOCKER_", "the container engine"),
    ("REWIND_", "ours"),
)
_NOT_A_MODEL_PREFIXES = tuple(prefix for prefix, _ in _NOT_A_MODEL)


def endpoints_from_environment(env: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The addresses named in ``*_BASE_URL``, ``*_API_BASE``, ``*_ENDPOINT``, ``OLLAMA_HOST`` and their like."""
    found = (
        _endpoint(value.strip(), OLLAMA_PORT if name == "OLLAMA_HOST" else None)
        for name, value in sorted(env.items())
        if _names_a_model(name.upper())
    )
    return tuple(dict.fromkeys(endpoint for endpoint in found if endpoint is not None))


def hosts_from_environment(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of those addresses; they are recorded like the known ones."""
    return tuple(dict.fromkeys(endpoint.host for endpoint in endpoints_from_environment(env)))


def addresses(patterns: Iterable[str]) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    """Those patterns that are IP addresses."""
    found = (as_address(pattern) for pattern in patterns)
    return tuple(address for address in found if address is not None)


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The host as an IP address, if it is one."""
    if ":" not in host and not host[-1:].isdigit():
        return None  # no top-level domain ends in a digit; asking ``ipaddress`` costs ten times as much
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _names_a_model(name: str) -> bool:
    if name in _EXACT_NAMES or name.startswith(_NAME_BEGINNINGS):
        return True
    return name.endswith(_NAME_ENDINGS) and not name.startswith(_NOT_A_MODEL_PREFIXES)


def _endpoint(value: str, default_port: int | None) -> Endpoint | None:
    """``scheme://host:port/path``, ``host:port`` or ``host``; anything else is somebody's own meaning."""
    bare = "://" not in value
    try:
        parts = urlsplit(f"http://{value}" if bare else value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if bare and default_port is not None:
        # OLLAMA_HOST is also what the server listens on: ":11434" and "0.0.0.0" mean this machine.
        host, port = host or "127.0.0.1", port or default_port
    if host == "0.0.0.0":  # noqa: S104  read, never bound
        host = "127.0.0.1"
    name = plain_name(host or "")
    if not name or parts.scheme not in ("http", "https") or not _could_be_a_host(name, port, bare):
        return None
    return Endpoint(parts.scheme, name, port or (443 if parts.scheme == "https" else 80))


def _could_be_a_host(host: str, port: int | None, bare: bool) -> bool:
    """A word alone ("production") in an ``*_ENDPOINT`` variable is no address."""
    if not host.isascii() or any(sign in host for sign in " /*\\\"'<>{}$"):
        return False
    return not bare or port is not None or "." in host or ":" in host or host == "localhost"
