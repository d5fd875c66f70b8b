"""A recorded run leaves its machine as a file, and is read, taken in and replayed on another, with no network."""

import random
import string
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import openai_chat, openai_stream
from support.canaries import find_canaries
from support.cli import KEYS, Result, run_rewind
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

AGENT = """
import json, os, pathlib, sys, urllib.request
def ask(messages, stream):
    body = {"model": "gpt-4o-mini", "messages": messages, "stream": stream}
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")}
    call = urllib.request.Request("https://api.openai.com/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(call, timeout=30) as answer:
        if not stream:
            return json.load(answer)["choices"][0]["message"]["content"]
        said = ""
        for line in answer:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    said += choice["delta"].get("content") or ""
        return said
messages = [{"role": "user", "content": "My note: " + pathlib.Path(sys.argv[1]).read_text()}]
for turn in range(3):
    said = ask(messages, turn == 1)
    print(turn, said, flush=True)
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": f"Go on, {turn}."}]
"""
"""Tells a model what is in a file, and talks on; the second answer is streamed."""


def an_agent(bench: Lab, note: str = "nothing secret") -> list[str]:
    script, file = bench.folder / "agent.py", bench.folder / "note.txt"
    script.write_text(AGENT)
    file.write_text(note)
    return [sys.executable, str(script), str(file)]


def echoing(*, account: str) -> Playbook:
    def answer(request: Request) -> Answer:
        asked = request.json()
        if asked["stream"]:
            spoken = f"Your account {account} is fine ({request.hit})."
            return openai_stream(request, [spoken[at : at + 5] for at in range(0, len(spoken), 5)])
        return openai_chat(request, f"Understood ({request.hit}), {len(asked['messages'])} messages.")

    return answer


def elsewhere(bench: Lab, *arguments: str | Path) -> Result:
    """Rewind on a machine that has another store, no key, and no way to the provider."""
    folder = bench.folder / "other machine"
    folder.mkdir(exist_ok=True)
    return run_rewind(arguments, folder / "store", {}, cwd=folder).sound()


def test_a_run_is_exported_taken_in_elsewhere_and_replayed_offline(lab: MakeLab) -> None:
    bench = lab(echoing(account="ACME-778-2210"))
    command = an_agent(bench)
    recorded = bench.record(command, options=["--name", "incident"]).ok()
    bench.rewind("export", "incident").ok()
    file = bench.folder / "incident.rw"
    bench.provider.go_away()
    before = bench.provider.connections

    opened = elsewhere(bench, "replay", file, "--", *command).ok()
    assert "3/3 steps replayed · 0 network calls" in opened.talk
    assert "output identical" in opened.talk
    assert opened.stdout == recorded.stdout

    assert f"✓ imported {recorded.session}  3 steps" in elsewhere(bench, "import", file).ok().text
    refused = elsewhere(bench, "replay", "incident")
    assert refused.code == 2
    assert "shown, not run" in refused.talk
    taken_in = elsewhere(bench, "replay", "incident", "--", *command).ok()
    assert "output identical" in taken_in.talk
    assert taken_in.stdout == recorded.stdout
    again = elsewhere(bench, "export", "incident", "-o", "-").ok()
    assert again.stdout == file.read_bytes()
    assert bench.provider.connections == before


def test_a_fork_of_a_cassette_goes_live_with_the_users_command_and_is_our_own(lab: MakeLab) -> None:
    bench = lab(echoing(account="ACME-778-2210"))
    command = an_agent(bench)
    bench.record(command).ok()
    bench.rewind("export", "last", "-o", "x.rw").ok()
    forked = bench.rewind("fork", "x.rw:3", *bench.upstream, "--set", "temperature=0", "--", *command, env=KEYS).ok()
    assert "rewind diff x.rw" in forked.talk
    assert bench.provider.calls == 4
    # What we ran ourselves is ours: it may be run again as it was.
    assert "3/3 steps replayed" in bench.replay("last").ok().talk


def test_what_a_pattern_takes_out_is_nowhere_and_the_cassette_still_replays(lab: MakeLab, tmp_path: Path) -> None:
    chance = random.SystemRandom()
    account = "ACME-" + "".join(chance.choices(string.digits, k=12))
    note = "passphrase " + "".join(chance.choices(string.ascii_letters + string.digits, k=20))
    bench = lab(echoing(account=account))
    command = an_agent(bench, note)
    bench.record(command, options=["--name", "incident"]).ok()
    shared = tmp_path / "shared"
    shared.mkdir()
    patterns = ["--redact", r"ACME-\d+", "--redact", r"(?<=passphrase )\w+"]
    for name in ("run.rw", "run.har", "run.md", "run.rw.zst"):
        told = bench.rewind("export", "incident", *patterns, "-o", shared / name).ok()
    assert "steps 1–3 will miss in a replay: the agent itself sends what was removed" in told.talk
    secrets = {"account": account, "note": note.split()[1], "key": KEYS["OPENAI_API_KEY"]}
    assert find_canaries(shared, secrets) == []
    bench.provider.go_away()

    missed = elsewhere(bench, "replay", shared / "run.rw", "--", *command)
    assert missed.code == 4
    drifted = elsewhere(bench, "replay", shared / "run.rw", "--allow-drift", "--", *command)
    assert "3/3 steps replayed · 3 drifted" in drifted.talk
    exact = elsewhere(bench, "replay", shared / "run.rw", *patterns, "--", *command).ok()
    assert "3/3 steps replayed · 0 network calls" in exact.talk
    assert "output identical" in exact.talk
    assert account not in exact.text


def test_what_only_the_model_said_is_taken_out_and_replays_as_it_is(lab: MakeLab, tmp_path: Path) -> None:
    account = "ACME-" + "".join(random.SystemRandom().choices(string.digits, k=12))
    bench = lab(echoing(account=account))
    command = an_agent(bench)
    bench.record(command).ok()
    told = bench.rewind("export", "last", "--redact", r"ACME-\d+", "-o", "x.rw").ok()
    assert "will miss" not in told.talk
    assert account.encode() not in (bench.folder / "x.rw").read_bytes()
    replayed = elsewhere(bench, "replay", bench.folder / "x.rw", "--", *command).ok()
    assert "3/3 steps replayed · 0 network calls" in replayed.talk
    assert "output identical" in replayed.talk


def test_a_key_that_nobody_knew_is_found_in_a_stream_and_stops_a_strict_export(lab: MakeLab) -> None:
    key = "ghp_" + "".join(random.SystemRandom().choices(string.ascii_letters + string.digits, k=36))
    bench = lab(echoing(account=key))
    bench.record(an_agent(bench)).ok()
    refused = bench.rewind("export", "last", "-o", "x.rw", "--strict-secrets")
    assert refused.code == 1
    assert "GitHub token ghp_… (40 characters)" in refused.talk
    assert key not in refused.talk
    assert not (bench.folder / "x.rw").exists()
