"""Telemetry: what an agent uploads about itself, by method, host and path. Nothing of it comes back into the run.

Such an upload has fresh ids, times and batch borders in every run, so it is recorded, shown apart, and no part of
comparing and of step counts; in a replay it is answered whatever its body says. Only uploads stand in the table. What
brings something in (prompts, feature flags, settings, a search for earlier runs) is a step like any other, also at the
same host: Statsig's ``initialize``, PostHog's ``/flags``, LangSmith's ``/runs/query``.

It is worked out from the head of a request whenever it is read, so an old session is read like a new one. A request
that the codec of an API claims is never telemetry, whatever a row says.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from rewind.dataclass import dataclass
from rewind.model.http import RequestHead
from rewind.model.step import StepRequest

ANY_HOST = "*"
UPLOADING = ("POST", "PUT", "PATCH")
"""The methods by which something is uploaded; a row of the user's may name one of them."""
_MIXED_HOSTS = ("huggingface.co", "chatgpt.com", "app.crewai.com", "api.wandb.ai")
"""Where uploads are the least: a client that finds such a host unreachable goes on without, as it should."""
PLAIN_HTTP = "http"
"""The provider of a step that no codec claims."""
_ROW = re.compile(r"(!\s*)?(?:([A-Za-z]+)\s+)?(?:https?://)?([^\s/]+)(/\S*)")


@dataclass(frozen=True, slots=True)
class UploadRow:
    """Where uploads go. In host and path ``*`` stands for any characters, in a path ``<n>`` for a number."""

    host: str
    """``*``: the path is telling enough wherever it is asked."""
    path: str
    name: str
    """What lists of steps call it; empty for a row that says what is no telemetry."""
    reason: str
    methods: tuple[str, ...] = ("POST",)
    answer: str = "{}"
    """What its client expects as the body of a 200, where no answer was recorded."""


_ALL = UPLOADING
# fmt: off
UPLOADS: tuple[UploadRow, ...] = (
    # Agents, and SDKs of models
    UploadRow(ANY_HOST, "*/v1/traces/ingest", "traces", "OpenAI Agents SDK (Python, JS): its tracing export"),
    UploadRow(ANY_HOST, "/api/event_logging/*", "event_logging", "Claude Code: events, in batches"),
    UploadRow(ANY_HOST, "/api/claude_code/metrics", "metrics", "Claude Code: its metrics export"),
    UploadRow(ANY_HOST, "*/codex/analytics-events/events", "analytics-events", "Codex: codex-rs/analytics"),
    UploadRow("chatgpt.com", "/ces/*", "ces", "ChatGPT and Codex clients: event collection"),
    UploadRow("play.googleapis.com", "/log", "clearcut", "Gemini CLI: Clearcut, every minute and at the end"),
    UploadRow(ANY_HOST, "/v1internal:recordCodeAssistMetrics", "code assist metrics",
              "Gemini CLI signed in with Google: how suggestions were taken"),
    UploadRow(ANY_HOST, "/v1internal:recordTrajectoryAnalytics", "trajectory analytics",
              "Antigravity: what an agent did"),
    UploadRow("copilot-telemetry*.githubusercontent.com", "/telemetry", "copilot", "GitHub Copilot"),
    UploadRow("telemetry*.githubcopilot.com", "/telemetry", "copilot", "GitHub Copilot, by plan"),
    UploadRow("app.crewai.com", "/crewai_plus/api/v1/tracing/*batches*", "crewai traces", "CrewAI: tracing batches"),
    UploadRow("telemetry.crewai.com", "/*", "crewai", "CrewAI: anonymous usage (OTLP on port 4319)"),
    # OpenTelemetry, whoever receives it: Laminar, Traceloop, Logfire, Phoenix, Arize, Langfuse, Grafana, a collector …
    UploadRow("ab.chatgpt.com", "/otlp/*", "otlp", "Codex: its metrics", answer=""),
    UploadRow("logfire-*.pydantic.dev", "/v1/*s", "otlp", "Logfire: traces, metrics, logs", answer=""),
    UploadRow("otlp.*.arize.com", "/v1/*s", "otlp", "Arize, regional", answer=""),
    UploadRow("otlp.arize.com", "/v1/*s", "otlp", "Arize", answer=""),
    UploadRow("otlp.agentops.ai", "/v1/*s", "otlp", "AgentOps", answer=""),
    UploadRow("otlp*.nr-data.net", "/v1/*s", "otlp", "New Relic", answer=""),
    UploadRow("otlp-gateway-*.grafana.net", "/otlp/*", "otlp", "Grafana Cloud", answer=""),
    UploadRow("api.traceloop.com", "/v1/traces", "otlp traces", "Traceloop, and not its prompts", answer=""),
    UploadRow(ANY_HOST, "*/v1/traces", "otlp traces", "OTLP over HTTP: spans", answer=""),
    UploadRow(ANY_HOST, "*/v1/metrics", "otlp metrics", "OTLP over HTTP: metrics", answer=""),
    UploadRow(ANY_HOST, "*/v1/logs", "otlp logs", "OTLP over HTTP: logs", answer=""),
    UploadRow(ANY_HOST, "*/opentelemetry.proto.collector.*/Export", "otlp", "OTLP over gRPC", answer=""),
    UploadRow(ANY_HOST, "/api/v2/spans", "zipkin", "Zipkin spans", answer=""),
    # Traces of LLM calls
    UploadRow("*.smith.langchain.com", "*/runs", "langsmith runs", "LangSmith: one run at a time", _ALL),
    UploadRow("*.smith.langchain.com", "*/runs/batch", "langsmith runs", "LangSmith: runs in batches"),
    UploadRow("*.smith.langchain.com", "*/runs/*-*-*-*-*", "langsmith runs", "LangSmith: a run has ended", ("PATCH",)),
    # Not /runs and /runs/batch of any host: a LangGraph server is asked for work there.
    UploadRow(ANY_HOST, "*/runs/multipart", "langsmith runs", "LangSmith, self-hosted ones included"),
    UploadRow("*.langfuse.com", "/api/public/otel/*", "langfuse", "Langfuse's own servers: OTLP", answer=""),
    UploadRow(ANY_HOST, "/api/public/ingestion", "langfuse", "Langfuse: events in batches; it reads this answer",
              answer='{"successes":[],"errors":[]}'),
    UploadRow("api.lmnr.ai", "/v1/browser-sessions/events", "laminar", "Laminar: recorded browser sessions"),
    UploadRow("*api.helicone.ai", "/v1/trace/log*", "helicone", "Helicone: asynchronous logging"),
    UploadRow("api.worker.helicone.ai", "/*log", "helicone", "Helicone: manual logging of any provider"),
    UploadRow("api.hconeai.com", "/*log", "helicone", "Helicone: manual logging, older name"),
    UploadRow("trace.wandb.ai", "/call/start", "weave", "Weave: a call has begun"),
    UploadRow("trace.wandb.ai", "/call/end", "weave", "Weave: a call has ended"),
    UploadRow("trace.wandb.ai", "/call/update", "weave", "Weave: a call was given a name or a note"),
    UploadRow("trace.wandb.ai", "/call/upsert_batch", "weave", "Weave: calls in batches"),
    UploadRow("trace.wandb.ai", "/v2/*/call*/start", "weave", "Weave: a call has begun, newer API"),
    UploadRow("trace.wandb.ai", "/v2/*/call*/end", "weave", "Weave: a call has ended, newer API"),
    UploadRow("trace.wandb.ai", "/v2/*/calls/complete", "weave", "Weave: whole calls, newer API"),
    UploadRow("api.wandb.ai", "/files/*/file_stream", "wandb", "Weights & Biases: metrics and output of a run"),
    UploadRow("api.braintrust.dev", "/logs3*", "braintrust logs", "Braintrust: spans"),
    UploadRow(ANY_HOST, "*/api/<n>.0/mlflow/traces", "mlflow traces", "MLflow: a trace has begun", _ALL),
    UploadRow(ANY_HOST, "*/api/<n>.0/mlflow/traces/tr-*", "mlflow traces", "MLflow: a trace has ended", ("PATCH",)),
    UploadRow(ANY_HOST, "*/api/<n>.0/mlflow/runs/log-*", "mlflow runs", "MLflow: metrics, parameters and batches"),
    UploadRow("*.mlflow-telemetry.io", "/*", "mlflow", "MLflow: usage of MLflow itself"),
    UploadRow(ANY_HOST, "*/v1/private/traces", "opik", "Opik: one trace", _ALL),
    UploadRow(ANY_HOST, "*/v1/private/traces/batch", "opik", "Opik: traces in batches", _ALL),
    UploadRow(ANY_HOST, "*/v1/private/spans", "opik", "Opik: one span", _ALL),
    UploadRow(ANY_HOST, "*/v1/private/spans/batch", "opik", "Opik: spans in batches", _ALL),
    UploadRow(ANY_HOST, "*/v1/private/*s/*-*-*-*-*", "opik", "Opik: a trace or span has ended", ("PATCH",)),
    UploadRow("api.agentops.ai", "/v<n>/*upload*", "agentops", "AgentOps: logs and objects of a session"),
    UploadRow("api.lunary.ai", "/v1/runs/ingest", "lunary", "Lunary: runs"),
    UploadRow("app.langtrace.ai", "/api/trace", "langtrace", "Langtrace: spans"),
    UploadRow("api.promptlayer.com", "/*track-*", "promptlayer", "PromptLayer: requests, told afterwards"),
    UploadRow("api.promptlayer.com", "/*log-request", "promptlayer", "PromptLayer: requests, told afterwards"),
    UploadRow("api.promptlayer.com", "/spans-bulk", "promptlayer", "PromptLayer: spans"),
    UploadRow("api.arize.com", "/v1/log", "arize", "Arize: predictions"),
    UploadRow("ingest.galileo.ai", "/*", "galileo", "Galileo: traces"),
    # Product analytics
    UploadRow(ANY_HOST, "*/v1/rgstr", "statsig events", "Statsig: exposures and events", answer='{"success":true}'),
    UploadRow("statsig.anthropic.com", "/v1/rgstr", "statsig events", "Claude Code", answer='{"success":true}'),
    UploadRow("*.statsigapi.net", "/v1/rgstr", "statsig events", "Statsig in browsers", answer='{"success":true}'),
    UploadRow("*statsig*", "/v1/log_event*", "statsig events", "Statsig server SDKs", answer='{"success":true}'),
    UploadRow("*statsig*", "/v1/sdk_exception", "statsig errors", "Statsig: errors of its own SDK"),
    UploadRow("*.posthog.com", "/batch*", "posthog", "PostHog SDKs: aider, browser-use, mem0, Haystack …"),
    UploadRow("*.posthog.com", "/capture*", "posthog", "PostHog: one event"),
    UploadRow("*.posthog.com", "/e/*", "posthog", "PostHog in a browser"),
    UploadRow("*.posthog.com", "/track*", "posthog", "PostHog: one event, older name"),
    UploadRow("*.posthog.com", "/engage*", "posthog", "PostHog: who it was"),
    UploadRow("*.posthog.com", "/s/*", "posthog", "PostHog: session recordings"),
    UploadRow(ANY_HOST, "*/i/v0/*", "posthog", "PostHog, self-hosted ones included: /i/v0/e/, /i/v0/ai/batch/"),
    UploadRow("*api.segment.io", "/v1/*", "segment", "Segment: batch, track, identify …"),
    UploadRow("*.segmentapis.com", "/v1/*", "segment", "Segment, regional"),
    UploadRow("*.rudderstack.com", "/v1/batch", "rudderstack", "RudderStack"),
    UploadRow("*.rudderlabs.com", "/v1/batch", "rudderstack", "RudderStack, older name"),
    UploadRow("*.amplitude.com", "/2/httpapi", "amplitude", "Amplitude: events", answer='{"code":200}'),
    UploadRow("*.amplitude.com", "/batch", "amplitude", "Amplitude: events in batches", answer='{"code":200}'),
    UploadRow("*.amplitude.com", "/identify", "amplitude", "Amplitude: who it was", answer='{"code":200}'),
    UploadRow("api*.mixpanel.com", "/track*", "mixpanel", "Mixpanel: events; its SDK reads this answer",
              answer='{"status":1,"error":null}'),
    UploadRow("api*.mixpanel.com", "/engage*", "mixpanel", "Mixpanel: who it was", answer='{"status":1,"error":null}'),
    UploadRow("api*.mixpanel.com", "/groups*", "mixpanel", "Mixpanel: groups", answer='{"status":1,"error":null}'),
    UploadRow("api*.mixpanel.com", "/import*", "mixpanel", "Mixpanel: old events", answer='{"code":200,"status":1}'),
    UploadRow("heapanalytics.com", "/api/*track*", "heap", "Heap"),
    UploadRow("*.google-analytics.com", "/*collect", "google analytics", "Google Analytics", answer=""),
    UploadRow("*.launchdarkly.com", "/bulk*", "launchdarkly events", "LaunchDarkly: which flags were looked at"),
    UploadRow("*.launchdarkly.com", "/diagnostic*", "launchdarkly events", "LaunchDarkly: its own SDK"),
    UploadRow("*.launchdarkly.com", "/*/events/*", "launchdarkly events", "LaunchDarkly in browsers and on phones"),
    UploadRow(ANY_HOST, "*/api/client/metrics", "unleash metrics", "Unleash: which flags were looked at"),
    UploadRow("huggingface.co", "/api/telemetry/*", "hugging face", "huggingface_hub: it asks nothing", ("HEAD",), ""),
    UploadRow("api.gradio.app", "/gradio-*", "gradio", "Gradio: launches and errors"),
    UploadRow("telemetry.nextjs.org", "/api/v1/record", "next.js", "Next.js"),
    UploadRow("telemetry.vercel.com", "/*", "vercel", "Turborepo and the Vercel CLI"),
    # Errors
    UploadRow("*.ingest*.sentry.io", "/api/<n>/*", "sentry", "Sentry's own servers, by region"),
    UploadRow(ANY_HOST, "*/api/<n>/envelope/", "sentry", "Sentry: errors, transactions, logs"),
    UploadRow(ANY_HOST, "*/api/<n>/store/", "sentry", "Sentry: errors, older SDKs"),
    UploadRow("notify.bugsnag.com", "/*", "bugsnag", "Bugsnag: errors"),
    UploadRow("sessions.bugsnag.com", "/*", "bugsnag", "Bugsnag: sessions"),
    UploadRow("api*.rollbar.com", "/api/1/item*", "rollbar", "Rollbar: errors"),
    UploadRow("api.honeybadger.io", "/v1/notices*", "honeybadger", "Honeybadger: errors"),
    # Logs and metrics of operations
    UploadRow("http-intake.logs.*", "/*", "datadog logs", "Datadog: logs, at any of its sites"),
    UploadRow("http-intake.logs.us5.datadoghq.com", "/*", "datadog logs", "Claude Code: its logs"),
    UploadRow("browser-intake-*", "/*", "datadog", "Datadog in browsers, at any of its sites"),
    UploadRow("browser-intake-us5-datadoghq.com", "/*", "datadog", "Claude Code: its errors"),
    UploadRow("*-intake.*datadoghq.*", "/api/v2/*", "datadog", "Datadog: LLM observability, events, its own SDK"),
    UploadRow("trace.agent.*datadoghq.*", "/api/v0.<n>/*", "datadog traces", "Datadog: traces, no local agent", _ALL),
    UploadRow("api.*datadoghq.*", "/api/v<n>/series", "datadog metrics", "Datadog: metrics"),
    UploadRow("api.*datadoghq.*", "/api/v<n>/distribution_points", "datadog metrics", "Datadog: distributions"),
    UploadRow(ANY_HOST, "/v0.<n>/traces", "datadog traces", "ddtrace, to the local agent; it reads sampling rates",
              _ALL, '{"rate_by_service":{}}'),
    UploadRow(ANY_HOST, "/v0.<n>/stats", "datadog stats", "ddtrace, to the local agent", _ALL),
    UploadRow(ANY_HOST, "/telemetry/proxy/*", "datadog", "ddtrace: its own SDK, through the local agent"),
    UploadRow(ANY_HOST, "/evp_proxy/*llmobs*", "datadog", "ddtrace: LLM observability, through the local agent"),
    UploadRow("*.newrelic.com", "/*/v1", "new relic", "New Relic: traces, logs and metrics"),
    UploadRow("*.newrelic.com", "/v1/accounts/*events", "new relic", "New Relic: events"),
    UploadRow("api*.honeycomb.io", "/1/batch/*", "honeycomb", "Honeycomb: events in batches", answer="[]"),
    UploadRow("api*.honeycomb.io", "/1/events/*", "honeycomb", "Honeycomb: one event"),
    UploadRow("*.applicationinsights.azure.com", "/v<n>*/track", "application insights", "Azure Monitor"),
    UploadRow("dc.services.visualstudio.com", "/v<n>*/track", "application insights", "Azure Monitor, older name"),
    UploadRow("*.events.data.microsoft.com", "/OneCollector/*", "one collector", "Microsoft's clients"),
    UploadRow("xray.*.amazonaws.com", "/TraceSegments", "x-ray", "AWS X-Ray: segments"),
    UploadRow("logging.googleapis.com", "/v2/entries:write", "google logs", "Google Cloud Logging"),
    UploadRow("cloudtrace.googleapis.com", "/v2/*:batchWrite", "google traces", "Google Cloud Trace"),
    UploadRow("monitoring.googleapis.com", "/v3/*/timeSeries", "google metrics", "Google Cloud Monitoring"),
    UploadRow(ANY_HOST, "*/loki/api/v1/push", "loki", "Grafana Loki: logs", answer=""),
    UploadRow(ANY_HOST, "*/intake/v2/events", "elastic apm", "Elastic APM", answer=""),
    UploadRow(ANY_HOST, "*/services/collector/event*", "splunk", "Splunk: HTTP event collector"),
    UploadRow("*.logs.betterstack.com", "/*", "better stack", "Better Stack: logs", answer=""),
    UploadRow("api.axiom.co", "/v1/datasets/*/ingest", "axiom", "Axiom: events"),
)
# fmt: on
"""Each row as the SDK of that service has it, or its documentation."""


# ── rows of the user's own ───────────────────────────────────────────────────────────────────────────────────

_own: tuple[UploadRow, ...] = ()


def read_row(text: str) -> UploadRow:
    """``POST host/path*`` of the setting ``telemetry``; without a method, any that uploads. Raises ValueError.

    With ``!`` before it, what goes there is no telemetry, whatever our own rows say.
    """
    found = _ROW.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not an address such as 'POST collector.example.com/events*'")
    method, host, path = (found[2] or "").upper(), found[3].lower().partition(":")[0], found[4].partition("?")[0]
    if method and method not in UPLOADING:
        raise ValueError(f"{text!r}: {method} uploads nothing; the methods that do are {', '.join(UPLOADING)}")
    words = [word for word in re.split(r"[/*]+", path) if word]
    if not words and not host.strip("*."):
        raise ValueError(f"{text!r} names every address there is")
    name = "" if found[1] else words[-1] if words else host.strip("*.")
    return UploadRow(host, path, name, "The setting 'telemetry'", (method,) if method else UPLOADING)


def use_rows(rows: Iterable[str]) -> None:
    """Put the rows of the settings in force, for this process."""
    global _own  # one project's settings hold for a whole process, as the APIs of other distributions do
    own = tuple(map(read_row, rows))
    if own != _own:
        _own = own
        upload_row.cache_clear()


def rules_fingerprint() -> str:
    """Other for other rows: what was derived by them has to be derived anew."""
    from hashlib import sha256  # lazily: only the catalog asks

    return sha256(repr((UPLOADS, _own)).encode()).hexdigest()[:16]


def upload_hosts() -> tuple[str, ...]:
    """The hosts to which hardly anything but uploads goes: a replay speaks as them, so that these do not fail.

    Patterns that could be almost any host are left out: no certificate may be good for those.
    """
    rows = (row for row in (*_own, *UPLOADS) if row.name and row.host not in _MIXED_HOSTS)
    return tuple(dict.fromkeys(row.host for row in rows if "*" not in row.host or _names_a_domain(row.host)))


def _names_a_domain(pattern: str) -> bool:
    """True if what stands behind the last star has a domain and more than that."""
    return pattern.rpartition("*")[2].count(".") > 1


# ── is it telemetry? ─────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)
def upload_row(method: str, host: str, path: str) -> UploadRow | None:
    """The row that says where this goes, and that nothing comes of it."""
    method, host = method.upper(), host.lower()
    for row in (*_own, *UPLOADS):
        if method in row.methods and _fits(row.host, host) and _fits(row.path, path):
            return row if row.name else None
    return None


def upload_name(provider: str, head: RequestHead) -> str | None:
    """What kind of telemetry a request is that this provider reads; ``None`` where it is none."""
    row = None if provider != PLAIN_HTTP else upload_row(head.method, head.host, head.path)
    return None if row is None else row.name


def telemetry_of(request: StepRequest) -> str | None:
    """What kind of telemetry the step is; ``None`` for a step of the run itself."""
    return upload_name(request.provider, request.head)


def _fits(pattern: str, text: str) -> bool:
    if pattern in (ANY_HOST, text):
        return True
    return _is_open(pattern) and _compiled(pattern).fullmatch(text) is not None


def _is_open(pattern: str) -> bool:
    return "*" in pattern or "<n>" in pattern


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> "re.Pattern[str]":
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace("<n>", r"\d+"), re.DOTALL)
