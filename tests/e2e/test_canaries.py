"""Secrets planted in every place an agent has are found nowhere under the store."""

import json
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import anthropic_message, gemini_content, openai_chat, openai_error, openai_stream
from support.canaries import find_canaries, self_check
from support.cli import KEYS
from support.lab import Lab
from support.script import Answer, Playbook, Request, routes

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]


def planted() -> dict[str, str]:
    """One secret for each variable; made anew every time, so that no rule can know them."""
    chance = random.SystemRandom()

    def word(size: int) -> str:
        return "".join(chance.choices(string.ascii_letters + string.digits, k=size))

    return {
        "OPENAI_API_KEY": f"sk-proj-{word(40)}",
        "ANTHROPIC_API_KEY": f"sk-ant-api03-{word(40)}",
        "GEMINI_API_KEY": f"AIza{word(35)}",
        "SESSION_TOKEN": f"{word(12)}.{word(30)}-_{word(8)}",
        "DATABASE_PASSWORD": f'{word(8)} "ä/{word(6)}\\+{word(8)}',
        "INTERNAL_SERVICE_SECRET": word(32),
    }


def echoing(secrets: dict[str, str]) -> Playbook:
    """A provider that knows the secrets and says them back in every way it has."""

    def chat(request: Request) -> Answer:
        prompt = request.json()["messages"][0]["content"]
        spoken = f"You said {secrets['DATABASE_PASSWORD']} and {secrets['OPENAI_API_KEY']}, right?"
        if prompt.endswith("pieces"):
            return openai_stream(request, [spoken[at : at + 4] for at in range(0, len(spoken), 4)])
        if prompt.endswith("compressed"):
            return openai_chat(request, spoken).compressed("gzip")
        if prompt.endswith("error"):
            return openai_error(request, 401, f"Incorrect API key provided: {secrets['OPENAI_API_KEY']}.")
        return openai_chat(request, spoken)

    return routes(
        {
            "/v1/chat/completions": chat,
            "/v1/messages": lambda request: anthropic_message(request, secrets["ANTHROPIC_API_KEY"]),
            "/v1beta": lambda request: gemini_content(request, f"Your key is {secrets['GEMINI_API_KEY']}."),
        }
    )


def test_no_secret_is_found_anywhere_under_the_store(lab: MakeLab) -> None:
    secrets = planted()
    bench = lab(echoing(secrets))
    recorded = bench.record(
        "leaky.py", secrets["INTERNAL_SERVICE_SECRET"], f"--password={secrets['DATABASE_PASSWORD']}", env=secrets
    ).ok()
    assert bench.provider.calls == 7
    # The agent itself was not touched: its output and its requests carry what it put in.
    assert secrets["DATABASE_PASSWORD"] in recorded.text
    assert any(secrets["OPENAI_API_KEY"].encode() in request.raw for request in bench.provider.requests)
    assert [step["ending"] for step in bench.steps(recorded.session)] == ["complete"] * 7
    assert find_canaries(bench.home, secrets) == []


def test_what_is_shown_holds_no_secret_either(lab: MakeLab) -> None:
    secrets = planted()
    bench = lab(echoing(secrets))
    recorded = bench.record("leaky.py", secrets["INTERNAL_SERVICE_SECRET"], env=secrets).ok()
    shown = [bench.rewind("inspect", recorded.session), bench.rewind("inspect", recorded.session, "--json")]
    for step in range(1, 8):
        shown += [
            bench.rewind("inspect", f"{recorded.session}:{step}"),
            bench.rewind("inspect", f"{recorded.session}:{step}", "--raw", "--request"),
            bench.rewind("inspect", f"{recorded.session}:{step}", "--raw", "--response"),
        ]
    shown.append(bench.rewind("list", "--json"))
    pages = bench.folder / "pages"
    pages.mkdir()
    for number, page in enumerate(shown):
        (pages / f"{number}.txt").write_bytes(page.ok().stdout + page.stderr)
    assert find_canaries(pages, secrets) == []


def test_a_recording_without_its_secrets_still_replays_with_other_ones(lab: MakeLab) -> None:
    """Matching works on the redacted form, so another machine with other keys gets the same answers."""
    secrets = planted()
    bench = lab(echoing(secrets))
    recorded = bench.record("leaky.py", "--verbose", env=secrets).ok()
    replayed = bench.replay(recorded.session, env=planted() | {"DATABASE_PASSWORD": secrets["DATABASE_PASSWORD"]})
    assert replayed.code in (0, 1), replayed.talk  # its own secret in its output may differ
    assert "7/7" in replayed.talk


def test_what_rewind_writes_is_for_its_owner_only(lab: MakeLab) -> None:
    """The store after every command that writes to it, and what is exported; with a umask that forbids nothing."""
    bench = lab(lambda request: openai_chat(request, "hello"))
    open_to_all = ["sh", "-c", 'umask 000; exec "$@"', "sh"]
    recorded = bench.record("curl_call.sh", prefix=open_to_all).ok()
    assert json.loads(recorded.text)["object"] == "chat.completion"
    exports = bench.folder / "exports"
    exports.mkdir()
    (exports / "team.rw").touch()
    (exports / "team.rw").chmod(0o664)
    for words in (
        ("replay", recorded.session, "--on-miss", "live", *bench.upstream),
        ("fork", f"{recorded.session}:1", "--set", "temperature=0", *bench.upstream),
        ("list", "--name", "nobody"),
        ("stats",),
        ("search", "hello"),
        *(("export", recorded.session, "-o", exports / f"run.{ending}") for ending in ("rw", "rw.zst", "har", "md")),
        ("export", recorded.session, "--force", "-o", exports / "team.rw"),
        ("import", exports / "run.har"),
        ("verify",),
    ):
        bench.rewind(*words, prefix=open_to_all, env=KEYS).ok()
    assert (exports / "team.rw").stat().st_mode & 0o777 == 0o664, "who made it readable meant it"
    written = [path for path in exports.iterdir() if path.name != "team.rw"]
    assert len(written) == 4
    assert {"catalog.duckdb", "search.duckdb", "replays.jsonl"} <= {path.name for path in bench.home.iterdir()}
    for path in [bench.home, *bench.home.rglob("*"), *written]:
        allowed = 0o700 if path.is_dir() else 0o600
        assert path.stat().st_mode & 0o777 & ~allowed == 0, path


def test_nothing_is_left_in_the_temporary_folder(lab: MakeLab, tmp_path: Path) -> None:
    """Certificates and hooks made for the child go with it, and held no secret."""
    secrets = planted()
    bench = lab(echoing(secrets))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    bench.record("leaky.py", env=secrets | {"TMPDIR": str(temporary)}).ok()
    assert [path.name for path in temporary.rglob("*")] == []


def test_the_search_for_secrets_finds_what_is_planted(tmp_path: Path) -> None:
    self_check(tmp_path)
    assert find_canaries(tmp_path, {"absent": "0123456789 not in there"}) == []
