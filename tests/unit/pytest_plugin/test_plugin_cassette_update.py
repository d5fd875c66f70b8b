"""What a cassette tells of the machine it was made on."""

from rewind.model.session import Status
from rewind.pytest_plugin.cassette_update import as_committed
from support.recorded_runs import portable, run_of, step


def test_a_cassette_tells_of_the_test_and_not_of_the_machine() -> None:
    keys = ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY")
    urls = {"OPENAI_BASE_URL": "https://api.openai.com/v1", "INTERNAL_BASE_URL": "https://secret.corp/v1"}
    recorded = portable(step(1, "a"), name="tests/t.py::t", key_variables=keys, base_urls=urls)
    made = as_committed(run_of(recorded), exit_code=0)
    start, end = made.recording.session.start, made.recording.session.end
    assert start.command == ("pytest", "tests/t.py::t")
    assert start.cwd == ""
    assert start.key_variables == ("OPENAI_API_KEY",)
    assert start.base_urls == {"OPENAI_BASE_URL": "https://api.openai.com/v1"}
    assert end is not None and end.exit_code == 0
    assert made.recording.session.status is Status.ENDED


def test_credentials_are_known_by_their_provider_or_by_the_host() -> None:
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "AWS_SECRET_ACCESS_KEY")
    for host, named in (
        ("generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        ("api.groq.com", ("GROQ_API_KEY",)),
        ("bedrock-runtime.us-east-1.amazonaws.com", ("AWS_SECRET_ACCESS_KEY",)),
        ("api.example.com", ()),
    ):
        made = as_committed(run_of(portable(step(1, "a", host=host), key_variables=keys)), exit_code=0)
        assert made.recording.session.start.key_variables == named, host
