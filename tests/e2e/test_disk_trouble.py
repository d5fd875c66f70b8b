"""A full disk or a read-only store is Rewind's trouble, not the agent's."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rewind.store.library import Library
from support.answers import openai_chat
from support.cli import Result, agent_command
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

CALLS = 60
MakeLab = Callable[[Playbook], Lab]


def bulky(request: Request) -> Answer:
    """About 32 KB that no compression makes small."""
    return openai_chat(request, "".join(hashlib.sha512(b"%d %b" % (n, request.body)).hexdigest() for n in range(256)))


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A small file system of its own, where this process may mount one; elsewhere the test says why it did not run."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def record(bench: Lab, agent: list[str] | None = None, **more: Any) -> Result:
    """The agent knows the provider's address and certificate itself: it gets its answers with or without a gateway."""
    env = {"OPENAI_BASE_URL": f"{bench.provider.url}/v1", "SSL_CERT_FILE": str(bench.trust.ca_file)}
    return bench.record(agent or [*agent_command("stubborn.py"), str(CALLS)], env=env, **more)


def everything_reached_the_agent(bench: Lab, result: Result) -> None:
    assert result.code == 7, result.talk
    expected = [
        {"number": number, "sha256": hashlib.sha256(bulky(request).body).hexdigest()}
        for number, request in enumerate(bench.provider.requests)
    ]
    assert result.lines == expected
    assert len(expected) == CALLS
    assert "Traceback" not in result.talk


def earlier_steps_are_whole(bench: Lab) -> int:
    """The number of answers that can be read back; each is what the provider sent."""
    listed = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]
    assert len(listed) == 1
    assert listed[0]["status"] in ("broken", "interrupted")
    complete = [step for step in bench.steps(listed[0]["id"]) if step["ending"] == "complete"]
    library = Library(bench.home)
    with library.open(library.find(listed[0]["id"])) as reader:
        kept = {step.index: step.response for step in reader.recording().steps}
        for step in complete:
            response = kept[step["index"]]
            assert response is not None
            assert reader.blob(response.body) == bulky(bench.provider.requests[step["index"] - 1]).body
    return len(complete)


def test_disk_full_while_recording(lab: MakeLab) -> None:
    bench = lab(bulky)
    with mounted(bench.home, "size=1m"):
        result = record(bench)
        everything_reached_the_agent(bench, result)
        assert "no space left" in result.talk.lower()
        whole = earlier_steps_are_whole(bench)
        assert 0 < whole < CALLS
        counted = int(result.talk.partition("  (")[2].partition(" LLM call")[0])
        assert counted <= whole + 1, "what was written is counted; of the last one perhaps the request alone"
        assert f"  {CALLS - whole} calls could not be written." in result.talk


def test_a_file_that_may_not_grow(lab: MakeLab) -> None:
    """The same without any mount: the system refuses to let a file grow past a limit."""
    bench = lab(bulky)
    limit = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh"]
    result = record(bench, prefix=limit)
    everything_reached_the_agent(bench, result)
    assert "not recorded" in result.talk.lower()


def test_no_room_from_the_start(lab: MakeLab) -> None:
    """Not even the session's first line, or the files that the child needs, find a place."""
    bench = lab(bulky)
    with mounted(bench.home, "size=16k"):
        result = record(bench)
        everything_reached_the_agent(bench, result)
        assert "not" in result.talk.lower()


def test_read_only_store(lab: MakeLab) -> None:
    bench = lab(bulky)
    with mounted(bench.home, "size=10m,ro"):
        result = record(bench)
        everything_reached_the_agent(bench, result)
        assert "read-only" in result.talk.lower()


def test_sessions_that_vanish_while_recording(lab: MakeLab) -> None:
    """The agent removes the sessions under Rewind's feet, then works on."""
    bench = lab(bulky)
    stubborn = " ".join(agent_command("stubborn.py"))
    script = f"rm -rf '{bench.home}/sessions'; exec {stubborn} {CALLS}"
    result = record(bench, ["sh", "-c", script])
    everything_reached_the_agent(bench, result)
    assert "rewind: this run was not recorded: the folder of the session was removed while the agent ran" in result.talk
    assert "rewind inspect" not in result.talk
    assert "Session recorded" not in result.talk


def test_a_store_folder_without_permission(lab: MakeLab) -> None:
    """For everyone but root, who may write anywhere."""
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    bench = lab(bulky)
    bench.home.mkdir(mode=0o500)
    try:
        everything_reached_the_agent(bench, record(bench))
    finally:
        bench.home.chmod(0o700)
