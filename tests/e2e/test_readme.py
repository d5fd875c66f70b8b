"""What the README shows of ``bisect``, ``--prove`` and ``fork`` is what they print for the demo's two runs.

With ``REWIND_WRITE_README=1`` the screens in the README are written anew.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rewind.demo.run import DemoProvider
from rewind.model.ids import SessionId
from rewind.store.journal.writer import SessionWriter
from support.cli import run_rewind
from support.incidents.case import incident_pair
from support.incidents.catalogue import DEVELOPMENT
from support.incidents.group import group_case
from support.planted_recording import Played

pytestmark = pytest.mark.e2e

README = Path(__file__).parents[2] / "README.md"
IDS = ("7f3a2b9c", "9b2c0d1e", "c51e07aa", "1043aa78", "e11d2b9c", "5c0e8f21", "81aa33e1", "33e1d402", "d402c51e")
"""As the README calls the runs, in the order in which it tells of them, whatever they were drawn as."""
TIME = "2026-11-16 09:14 UTC"
COMMANDS = (
    "rewind bisect refund-good refund-bad",
    "rewind bisect refund-good refund-bad --prove --yes",
    "rewind fork refund-bad:3 --set system=@refund-good:3",
)
SEVERAL = "rewind bisect --good 'refund-ok-*' --bad 'refund-bad-*'"
NOISY = "rewind bisect fix-good fix-bad"
INCIDENT = 39
"""Of the groups of incidents: the carrier of eight of ten refunds cannot be reached."""


class Readme:
    """The demo's two runs, recorded while its provider is there, and what commands say of them."""

    def __init__(self, folder: Path, provider: DemoProvider) -> None:
        self._folder = folder
        self._env = os.environ | {
            "COLUMNS": "100",
            "REWIND_HOME": str(folder / "store"),
            "NO_COLOR": "1",
            "PYTHONIOENCODING": "utf-8",
            "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "sk-ant-demo-key-0001",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        agent = [sys.executable, "-m", "rewind.demo.agent", "8821"]
        for name, more in (("refund-good", []), ("refund-bad", ["--strict"])):
            self.said("record", "--name", name, *agent, *more)

    def said(self, *arguments: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "rewind", *arguments],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 1) or "--strict" in arguments, done.stderr.decode()
        return done.stdout.decode(), done.stderr.decode()

    def screens(self) -> Iterator[tuple[str, str]]:
        """Each command of the README, with what follows it there."""
        told: dict[str, str] = {}
        for command in COMMANDS:
            data, talk = self.said(*command.split()[1:])
            if "--prove" in command:
                data = "…\n" + data[data.index("✓ The system prompt") :]
                talk = ""
            elif "fork" in command:
                data = "… the agent's own output …\n"
            yield command, self._as_told(data + ("\n" if "bisect" in command and talk else "") + talk, told)

    @staticmethod
    def _as_told(shown: str, told: dict[str, str]) -> str:
        for drawn in re.findall(r"\b[0-9a-f]{8}\b", shown):
            told.setdefault(drawn, IDS[len(told)])
        for drawn, name in told.items():
            shown = shown.replace(drawn, name)
        shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", TIME, shown)
        shown = re.sub(r"\d\d:\d\d UTC", TIME[-9:], shown)
        shown = re.sub(r"\b\d+\.\d s\b", "0.9 s", shown)
        return re.sub(r"python 3\.\d+", "python 3.11", shown)


def test_the_readme_shows_the_screens_as_they_are(tmp_path: Path) -> None:
    readme = README.read_text()
    with DemoProvider() as provider:
        for command, shown in Readme(tmp_path, provider).screens():
            lines = [f"$ {command}", *shown.rstrip().splitlines()]
            assert len(lines) <= 30
            block = "".join(f"    {line}".rstrip() + "\n" for line in lines)
            start = readme.index(f"    $ {command}\n")
            end = start + len(re.match(r"(?:(?:    .*)?\n)+", readme[start:])[0])  # type: ignore[index]
            written = readme[start:end]
            if os.environ.get("REWIND_WRITE_README"):
                readme = readme[:start] + block + "\n" + readme[end:]
            else:
                assert written == block + "\n"
    if os.environ.get("REWIND_WRITE_README"):
        README.write_text(readme)


def test_the_readme_shows_ten_runs_against_ten(tmp_path: Path) -> None:
    """Runs of an agent whose model never says the same words twice, kept as sessions of a store."""
    case = group_case(INCIDENT, 2, share=0.8)
    for side, runs in (("ok", case.goods), ("bad", case.bads)):
        for number, played in enumerate(runs):
            keep(tmp_path, played, f"{'7f3a' if side == 'ok' else '9b2c'}{number:04d}", f"refund-{side}-{number}")
    done = run_rewind(shlex.split(SEVERAL)[1:], tmp_path, {"COLUMNS": "100"})
    assert done.code == 1
    show(SEVERAL, [*done.text.splitlines(), "", *done.talk.splitlines()])


def test_the_readme_shows_a_cause_long_before_its_effect_in_runs_that_never_say_the_same_words(tmp_path: Path) -> None:
    agent = next(agent for agent in DEVELOPMENT if agent.name == "coding")
    incident = next(incident for incident in agent.incidents if incident.name == "no-changelog")
    pair = incident_pair(agent, incident, 2, 3)
    keep(tmp_path, pair.good, "7f3a2b9c", "fix-good")
    keep(tmp_path, pair.bad, "9b2c0d1e", "fix-bad")
    done = run_rewind(shlex.split(NOISY)[1:], tmp_path, {"COLUMNS": "100"})
    assert done.code == 1
    show(NOISY, done.text.splitlines())


def show(command: str, said: list[str]) -> None:
    """Asserts that the README has the screen, or writes it there."""
    lines = [f"$ {command}", *said]
    assert len(said) <= 30 and max(map(len, lines)) <= 100, "\n".join(lines)
    block = "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"
    readme = README.read_text()
    start = readme.index(f"    $ {command}\n")
    end = start + len(re.match(r"(?:(?:    .*)?\n)+", readme[start:])[0])  # type: ignore[index]
    if os.environ.get("REWIND_WRITE_README"):
        README.write_text(readme[:start] + block + readme[end:])
    else:
        assert readme[start:end] == block


def keep(home: Path, played: Played, session: str, name: str) -> None:
    """The run as a session of the store."""
    recording = played.recording
    start = replace(recording.session.start, id=SessionId(session), name=name)
    writer = SessionWriter.create(home, start)
    for step in recording.steps:
        asked, answered = played.bodies[step.index]
        head = step.request.head
        plain = tuple(one for one in head.headers if one[0].lower() != "user-agent")  # another client at each step
        writer.request(replace(step.request, head=replace(head, headers=plain)), asked)
        assert step.response is not None
        writer.response(step.index, step.response, answered)
    end = recording.session.end
    assert end is not None
    writer.end(ended=end.ended, exit_code=end.exit_code, redactions=0, remarks=())


def test_the_readmes_commands_run_as_they_stand_there(tmp_path: Path) -> None:
    section = README.read_text().partition("## Record and replay\n")[2].partition("\n## ")[0]
    commands = [shlex.split(line, comments=True)[1:] for line in re.findall(r"(?m)^    \$ (.*)$", section)]
    assert {command[0] for command in commands} >= {"record", "inspect", "replay", "list", "stats", "search", "verify"}
    with DemoProvider() as provider:
        readme = Readme(tmp_path, provider)
        shown = {" ".join(command): "".join(readme.said(*command)) for command in commands}
    assert "Session recorded: " in shown["record --name refund-good python -m rewind.demo.agent 8821"]
    strict = shown["replay refund-good -- python -m rewind.demo.agent 8821 --strict"]
    assert "asked     POST 127.0.0.1/rewind-demo/v1/messages  (claude-sonnet-4-6)" in strict
    assert "1 miss · 0 network calls" in strict


def test_the_readmes_way_of_sharing_a_run_works(tmp_path: Path) -> None:
    section = README.read_text().partition("## Share a run\n")[2].partition("\n## ")[0]
    commands = [shlex.split(line, comments=True)[1:] for line in re.findall(r"(?m)^    \$ (.*)$", section)]
    assert [command[0] for command in commands] == ["export", "import", "bisect"]
    with DemoProvider() as provider:
        readme = Readme(tmp_path, provider)
        shown = [readme.said(*command) for command in commands]
    assert "already there" in shown[1][0]
    assert "system prompt changed" in shown[2][0]
