"""Cassettes that lie under a seal that fits: every command says what the bodies say."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rewind.errors import DamagedStore
from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.model.ids import MatchKey, blob_id
from rewind.model.step import Step
from rewind.playback.decision import Serve
from rewind.playback.policies import Replay
from rewind.runs.recorded_steps import RecordedSteps
from rewind.store.library import Library
from support.effort import ALL, effort
from support.forgery import Run, a_run, forged
from unit.cli.shelf import Rewind

FORGERIES = effort(usual=100, whole=1000, variable="REWIND_FORGERIES")
AT_ONCE = 25
"""Forgeries in one test."""
COMMANDS = (
    ("inspect", "{file}"),
    ("inspect", "{file}", "--json"),
    ("inspect", "{file}:{step}", "--json"),
    ("messages", "{file}:{step}", "--json"),
    ("diff", "{file}", "{base}"),
    ("diff", "{base}", "{file}", "--json"),
    ("bisect", "{base}", "{file}"),
    ("export", "{file}", "-o", "-"),
    ("export", "{file}", "--har", "-o", "-"),
    ("export", "{file}", "--markdown", "-o", "-"),
)
ESCAPES = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def told(rewind: Rewind, file: Path, base: Path, dice: random.Random) -> list[tuple[int, bytes, str]]:
    """What commands say of a file."""
    found = []
    step = dice.randint(1, 5)
    for command in COMMANDS if ALL else dice.sample(COMMANDS, 2):
        ran = rewind(*(word.format(file=file.name, base=base, step=step) for word in command))
        assert ran.code in (0, 1, 2, 3), f"{command}: {ran.code} {ran.talk}"
        assert command[0] == "export" or not ESCAPES.search(ran.data), command
        found.append((ran.code, ran.data, ran.talk))
    return found


def served(home: Path, file: Path, requests: list[HttpRequest], *, only_played: bool) -> list[bytes | str | None]:
    """What a replay answers to these requests, or why it does not."""
    library = Library(home)
    with library.open(library.find(str(file))) as reader:
        steps = RecordedSteps(reader, only_played=only_played)
        policy = Replay(steps.tape(), steps.call, session="x")
        answers: list[bytes | str | None] = []
        for request in requests:
            glance = policy.at_a_glance(request) if only_played else None
            decision = glance or policy.decide(understand(request))
            step: Step | None = decision.step if isinstance(decision, Serve) else None
            try:
                answer = None if step is None else steps.answer(step)
                answers.append(None if answer is None else answer.body)
            except DamagedStore as problem:  # what no client could take
                answers.append(problem.message)
        return answers


def requests_of(run: Run) -> list[HttpRequest]:
    """As recorded, and once more written in another way: what they mean is the same."""
    found = [HttpRequest(head=step.request.head, body=run.blobs[step.request.body]) for step in run.recording.steps]
    return [*found, *(replace(request, body=request.body + b"\n") for request in found)]


@pytest.mark.parametrize("batch", range(-(-FORGERIES // AT_ONCE)))
def test_every_command_says_what_the_bodies_say(rewind: Rewind, tmp_path: Path, home: Path, batch: int) -> None:
    base = tmp_path / "base.rw"
    base.write_bytes(a_run().cassette())
    file, store = tmp_path / "x.rw", home
    for number in range(batch * AT_ONCE, min((batch + 1) * AT_ONCE, FORGERIES)):
        dice = random.Random(number)
        forgery = forged(dice)
        asked = requests_of(forgery.twin)
        answers, says = [], []
        for data in (forgery.file, forgery.twin.cassette()):
            file.write_bytes(data)
            says.append(told(rewind, file, base, random.Random(number)))
            answers.append([served(store, file, asked, only_played=played) for played in (True, False)])
        assert says[0] == says[1], f"{number}: {forgery.what}"
        assert answers[0] == answers[1], f"{number}: {forgery.what}"
        if ALL or number % 4 == 0:
            file.write_bytes(forgery.file)
            check_import(rewind, forgery.twin, file, number)


def check_import(rewind: Rewind, twin: Run, file: Path, number: int) -> None:
    """The store gets what the bodies say; what the file states otherwise is a remark, and no more."""
    verified = rewind("verify", file.name, "--json")
    assert verified.code == 0, number
    imported = rewind("import", file.name, "--json").json()["files"][0]
    assert imported["remarks"] == verified.json()["remarks"], number
    session = twin.recording.session.id
    whole = rewind("export", session, "-o", "-").data
    name = twin.recording.session.start.name
    assert whole == twin.cassette() or name != "support", number
    file.with_name("store").joinpath("sessions").rename(file.with_name(f"sessions.{number}"))


def test_what_differs_is_remarked_by_name(rewind: Rewind, tmp_path: Path) -> None:
    run = a_run()
    file = tmp_path / "x.rw"
    file.write_bytes(run.cassette())
    assert rewind("verify", "x.rw", "--json").json()["remarks"] == []
    request = run.recording.steps[0].request
    lie = run.with_step(0, request=replace(request, match_key=run.recording.steps[1].request.match_key))
    file.write_bytes(lie.cassette())
    ran = rewind("verify", "x.rw")
    assert ran.code == 0
    assert "step 1: the key in the file is not what the bodies say; Rewind goes by the bodies" in ran.text
    older = run.with_step(0, request=replace(request, match_key=MatchKey("rw0:" + "7" * 32)))
    file.write_bytes(older.cassette())
    assert rewind("verify", "x.rw", "--json").json()["remarks"] == [], "by another rule: nothing to compare"


def test_the_key_of_what_was_asked_before_an_edit_is_kept(rewind: Rewind, tmp_path: Path, home: Path) -> None:
    run = a_run()
    request = replace(run.recording.steps[3].request, asked_key=MatchKey("rw1:" + "a" * 32))
    run = run.with_step(3, request=request)
    file = tmp_path / "x.rw"
    file.write_bytes(run.cassette())
    library = Library(home)
    with library.open(library.find(str(file))) as reader:
        steps = RecordedSteps(reader, only_played=True)
        found = steps.tape().take(MatchKey("rw1:" + "a" * 32), blob_id(b"something else"))
    assert found is not None and found.index == 4
    assert rewind("verify", "x.rw", "--json").json()["remarks"] == []


def test_what_a_provider_that_is_not_known_here_had_read_is_kept_and_marked(rewind: Rewind, tmp_path: Path) -> None:
    run = a_run()
    step = run.recording.steps[3]
    assert step.response is not None
    reading = replace(step.response.reading, text="as it read it")
    response = replace(step.response, reading=reading)
    run = run.with_step(3, request=replace(step.request, provider="acme"), response=response)
    (tmp_path / "x.rw").write_bytes(run.cassette())
    shown = rewind("inspect", "x.rw:4").text
    assert "this Rewind does not know the provider 'acme'" in shown
    assert rewind("inspect", "x.rw", "--json").json()["steps"][3]["text"] == "as it read it"
