"""Which requests are telemetry: uploads of services that are known, or named in the settings, and nothing else."""

import pytest

from rewind.model.http import RequestHead
from rewind.model.ids import blob_id
from rewind.playback.tape import RecordedUploads, empty_answer
from rewind.providers.telemetry import UPLOADS, read_row, upload_hosts, upload_name, upload_row, use_rows
from rewind.store.journal.totals import RequestFacts

UPLOADED = [
    "POST https://api.openai.com/v1/traces/ingest",
    "POST http://127.0.0.1:8080/v1/traces/ingest",
    "POST https://api.anthropic.com/api/event_logging/v2/batch",
    "POST https://api.anthropic.com/api/event_logging/batch",
    "POST https://api.anthropic.com/api/claude_code/metrics",
    "POST https://statsig.anthropic.com/v1/rgstr",
    "POST https://statsigapi.net/v1/log_event",
    "POST https://http-intake.logs.us5.datadoghq.com/api/v2/logs",
    "POST https://chatgpt.com/backend-api/codex/analytics-events/events",
    "POST https://play.googleapis.com/log?format=json&hasfast=true",
    "POST https://cloudcode-pa.googleapis.com/v1internal:recordCodeAssistMetrics",
    "POST https://us.i.posthog.com/batch/",
    "POST https://eu.i.posthog.com/i/v0/e/",
    "POST https://metrics.example.com/i/v0/ai/batch/",
    "POST https://api.segment.io/v1/batch",
    "POST https://api2.amplitude.com/2/httpapi",
    "POST https://api.mixpanel.com/track",
    "POST https://o447951.ingest.us.sentry.io/api/4507/envelope/?sentry_key=k",
    "POST https://sentry.example.com/api/12/store/",
    "POST http://localhost:4318/v1/traces",
    "POST http://localhost:4318/v1/metrics",
    "POST https://logfire-us.pydantic.dev/v1/logs",
    "POST https://api.lmnr.ai/v1/traces",
    "POST https://api.traceloop.com/v1/traces",
    "POST https://telemetry.crewai.com:4319/v1/traces",
    "POST https://app.crewai.com/crewai_plus/api/v1/tracing/ephemeral/batches/1/events",
    "POST https://app.phoenix.arize.com/s/me/v1/traces",
    "POST https://otlp.arize.com/v1/traces",
    "POST https://api.smith.langchain.com/runs",
    "POST https://api.smith.langchain.com/runs/batch",
    "POST https://eu.api.smith.langchain.com/runs/multipart",
    "PATCH https://api.smith.langchain.com/runs/0b1f7a0c-5d3e-4a55-8f0e-1d2c3b4a5968",
    "POST https://langsmith.example.com/api/v1/runs/multipart",
    "POST https://api.smith.langchain.com/otel/v1/traces",
    "POST https://cloud.langfuse.com/api/public/ingestion",
    "POST https://cloud.langfuse.com/api/public/otel/v1/traces",
    "POST https://api.helicone.ai/v1/trace/log-python",
    "POST https://trace.wandb.ai/call/upsert_batch",
    "POST https://api.wandb.ai/files/me/project/run/file_stream",
    "POST https://api.honeycomb.io/1/batch/dataset",
    "POST https://trace-api.newrelic.com/trace/v1",
    "POST https://www.google-analytics.com/mp/collect?measurement_id=G-1",
    "POST https://api.braintrust.dev/logs3",
    "POST http://localhost:5000/api/2.0/mlflow/traces",
    "POST http://localhost:5000/api/2.0/mlflow/runs/log-batch",
    "POST https://www.comet.com/opik/api/v1/private/spans/batch",
    "PATCH https://www.comet.com/opik/api/v1/private/traces/0192f7a0-5d3e-7a55-8f0e-1d2c3b4a5968",
    "PUT http://localhost:8126/v0.5/traces",
    "HEAD https://huggingface.co/api/telemetry/transformers",
]
BRINGS_SOMETHING_IN = [
    "POST https://api.openai.com/v1/chat/completions",
    "POST https://api.anthropic.com/api/eval/sdk-zAZezfDKGoZuXXKe",
    "GET https://api.anthropic.com/api/event_logging/v2/batch",
    "GET https://api.anthropic.com/api/claude_code/organizations/metrics_enabled",
    "POST https://statsigapi.net/v1/initialize",
    "POST https://statsigapi.net/v1/download_config_specs",
    "POST https://us.i.posthog.com/flags/?v=2",
    "POST https://us.i.posthog.com/decide/?v=3",
    "GET https://us.i.posthog.com/api/feature_flag/local_evaluation",
    "GET https://cdn-settings.segment.com/v1/projects/k/settings",
    "POST https://api.mixpanel.com/flags",
    "GET https://api.smith.langchain.com/commits/-/prompt/latest",
    "POST https://api.smith.langchain.com/runs/query",
    "POST https://api.smith.langchain.com/runs/stats",
    "POST https://api.smith.langchain.com/sessions",
    "POST https://graph.example.com/runs/batch",
    "POST https://graph.example.com/runs",
    "GET https://cloud.langfuse.com/api/public/v2/prompts/greeting",
    "GET https://api.traceloop.com/v1/traceloop/prompts",
    "POST https://trace.wandb.ai/calls/stream_query",
    "POST https://trace.wandb.ai/obj/read",
    "POST https://api.wandb.ai/graphql",
    "POST https://api.braintrust.dev/api/apikey/login",
    "POST https://api.braintrust.dev/function/invoke",
    "POST http://localhost:5000/api/3.0/mlflow/traces/search",
    "GET http://localhost:5000/api/2.0/mlflow/traces",
    "POST https://sentry.io/api/0/organizations/",
    "POST https://shop.example.com/api/orders/store/",
    "POST https://sign.example.com/api/v2/envelope/",
    "POST https://api.example.com/v1/traces/search",
    "POST https://api.example.com/events",
    "GET http://localhost:4318/v1/traces",
    "POST https://app.launchdarkly.com/api/v2/flags",
    "POST https://api.datadoghq.com/api/v2/logs/events/search",
    "POST https://api.honeycomb.io/1/queries/dataset",
    "GET https://huggingface.co/api/models/gpt2",
]


@pytest.fixture(autouse=True)
def no_rows_of_others():
    yield
    use_rows(())


def head_of(address: str, content_type: str = "application/json") -> RequestHead:
    method, url = address.split(" ")
    scheme, rest = url.split("://")
    authority, slash, target = rest.partition("/")
    host, _, port = authority.partition(":")
    usual = 443 if scheme == "https" else 80
    headers = (("content-type", content_type),)
    return RequestHead(
        method=method, scheme=scheme, host=host, port=int(port or usual), target=slash + target, headers=headers
    )


@pytest.mark.parametrize("address", UPLOADED)
def test_what_is_uploaded_is_telemetry(address):
    assert upload_name("http", head_of(address))


@pytest.mark.parametrize("address", BRINGS_SOMETHING_IN)
def test_what_brings_something_in_is_a_step(address):
    assert upload_name("http", head_of(address)) is None


@pytest.mark.parametrize("address", [*UPLOADED, *BRINGS_SOMETHING_IN])
def test_a_line_of_a_journal_is_telemetry_where_its_step_is(address):
    head = head_of(address)
    fields = {"provider": "http", "method": head.method, "host": head.host, "target": head.target}
    assert RequestFacts.of_line(fields).telemetry == (upload_name("http", head) is not None)


def test_what_a_codec_claims_is_never_telemetry():
    use_rows(["POST api.openai.com/*"])
    head = head_of("POST https://api.openai.com/v1/chat/completions")
    assert upload_name("openai-chat", head) is None
    assert upload_name("http", head_of("POST https://api.openai.com/v1/mine")) == "api.openai.com"


def test_every_row_says_why_and_uploads():
    for row in UPLOADS:
        assert row.reason and row.name
        assert set(row.methods) <= {"POST", "PUT", "PATCH", "HEAD"}, row
        assert row.path.startswith(("/", "*/")), row


def test_no_certificate_is_good_for_nearly_any_host():
    use_rows(["POST telemetry.*/events", "POST *.com/events", "POST *.example.com/events", "POST */events"])
    hosts = upload_hosts()
    assert "*.example.com" in hosts and "play.googleapis.com" in hosts and "*.posthog.com" in hosts
    assert not {"telemetry.*", "*.com", "*", "huggingface.co"} & set(hosts)
    assert all(host.rpartition("*")[2].count(".") > 1 for host in hosts if "*" in host)


# Rows of the user's own


@pytest.mark.parametrize(
    ("row", "yes", "no"),
    [
        (
            "POST collector.example.com/events*",
            "POST https://collector.example.com/events/1",
            "PUT https://collector.example.com/events",
        ),
        (
            "collector.example.com/events",
            "PATCH https://collector.example.com/events",
            "POST https://collector.example.com/events/1",
        ),
        (
            "post https://Collector.example.com:8443/*",
            "POST https://collector.example.com/x",
            "GET https://collector.example.com/x",
        ),
        ("PUT */spool/<n>", "PUT http://localhost/spool/17", "PUT http://localhost/spool/a"),
    ],
)
def test_the_settings_add_rows(row, yes, no):
    use_rows([row])
    assert upload_name("http", head_of(yes))
    assert upload_name("http", head_of(no)) is None
    use_rows([])
    assert upload_name("http", head_of(yes)) is None


def test_the_settings_take_a_row_back():
    use_rows(["!POST api.example.com/v1/metrics"])
    assert upload_name("http", head_of("POST https://api.example.com/v1/metrics")) is None
    assert upload_name("http", head_of("POST https://other.example.com/v1/metrics"))


@pytest.mark.parametrize(
    "row", ["", "events", "POST", "GET collector.example.com/events", "DELETE x.example.com/y", "POST */*", "a b c/d"]
)
def test_what_is_no_row_is_said(row):
    with pytest.raises(ValueError, match=r"is not an address|uploads nothing|names every address"):
        read_row(row)


# The answer to one that was not recorded


@pytest.mark.parametrize(
    ("address", "content_type", "body"),
    [
        ("POST https://api.openai.com/v1/traces/ingest", "application/json", b"{}"),
        ("POST http://localhost:4318/v1/traces", "application/x-protobuf", b""),
        ("POST http://localhost:4318/v1/traces", "application/json", b"{}"),
        ("POST https://cloud.langfuse.com/api/public/ingestion", "application/json", b'{"successes":[],"errors":[]}'),
        ("POST https://o1.ingest.sentry.io/api/1/envelope/", "application/x-sentry-envelope", b"{}"),
    ],
)
def test_an_empty_answer_has_the_form_that_its_client_reads(address, content_type, body):
    head = head_of(address, content_type)
    row = upload_row(head.method, head.host, head.path)
    assert row is not None
    answer = empty_answer(row, head)
    assert (answer.head.status, answer.body) == (200, body)


def test_without_recorded_uploads_none_answers():
    assert RecordedUploads().answer_to(head_of(UPLOADED[0]), blob_id(b"x")) is None
