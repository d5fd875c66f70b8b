"""What a fork of a fork carries on: edits by hand, values of sessions that are gone, and no secret's placeholder."""

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import KEYS
from support.forks import SYSTEM, bodies, fork, forked, numbered, talks
from support.lab import Lab
from support.script import Playbook

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]


def editor(tmp_path: Path, code: str) -> dict[str, str]:
    """An editor that does what the code says to ``text``, and keeps what it was shown."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n"
        f"pathlib.Path({str(tmp_path / 'shown')!r}).write_text(text)\n{code}\npath.write_text(text)\n"
    )
    return KEYS | {"EDITOR": f"{sys.executable} {script}", "TMPDIR": str(tmp_path)}


def asked(bench: Lab, since: int) -> list[tuple[str, float]]:
    return [(body["messages"][0]["content"], body["temperature"]) for body in bodies(bench, since)]


def remove(bench: Lab, session: str) -> None:
    (folder,) = (bench.home / "sessions").glob(f"*-{session}")
    shutil.rmtree(folder)


def a_secret() -> str:
    return "sk-proj-" + "".join(random.SystemRandom().choices("abcdefghijkmnpqrstuvwxyz23456789", k=40))


# By hand


def test_what_was_edited_by_hand_is_carried_on_at_the_same_step(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    by_hand = editor(tmp_path, "text = text.replace('a clerk', 'EDITED')")
    once = forked(fork(bench, f"{base}:2", "--edit", env=by_hand).ok())
    twice = forked(fork(bench, f"{once}:2", "--set", "temperature=0.9").ok())
    remove(bench, base)
    thrice = forked(fork(bench, f"{twice}:2", "--set", "model=gpt-4o").ok())
    assert asked(bench, since=3) == [
        ("You are EDITED.", 0.7),
        (SYSTEM, 0.7),
        ("You are EDITED.", 0.9),
        (SYSTEM, 0.9),
        ("You are EDITED.", 0.9),
        (SYSTEM, 0.9),
    ], "by hand is for that one request, and what --set changed holds"
    for session in (once, twice, thrice):
        assert bench.replay(session).code == 0


def test_the_editor_shows_what_goes_out_and_what_goes_out_is_what_it_showed(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    once = forked(
        fork(bench, f"{base}:2", "--edit", env=editor(tmp_path, "text = text.replace('a clerk', 'EDITED')")).ok()
    )
    fork(bench, f"{once}:2", "--edit", env=editor(tmp_path, "text = text.replace('0.7', '0.1')")).ok()
    shown = json.loads((tmp_path / "shown").read_text())
    assert shown["messages"][0]["content"] == "You are EDITED."
    assert asked(bench, since=3) == [("You are EDITED.", 0.1)]


def test_an_edit_by_hand_that_comes_later_is_said_to_be_left_behind(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    once = forked(fork(bench, f"{base}:2", "--edit", env=editor(tmp_path, "text = text.replace('0.7', '0.1')")).ok())
    result = fork(bench, f"{once}:1").ok()
    assert "is not carried over" in result.talk and "edited by hand" in result.talk
    assert "edited by hand (of an earlier fork)" in fork(bench, f"{once}:1", "--dry-run").text


def test_a_made_up_answer_is_not_made_up_again_at_its_own_step_and_that_is_said(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    once = forked(fork(bench, f"{base}:2", "--set", "response=Never.").ok())
    result = fork(bench, f"{once}:2").ok()
    assert result.text.splitlines()[-1] == "answer 3 to b"
    assert "is not carried over: response=Never." in result.talk


# Sessions that are gone


def test_a_value_whose_session_is_gone_is_taken_from_what_had_gone_out(lab: MakeLab) -> None:
    bench = lab(numbered)
    kind = bench.record([word.replace(SYSTEM, "You are kind.") for word in talks("x")]).ok().session
    base = bench.record(talks("a", "b", "c")).ok().session
    once = forked(fork(bench, f"{base}:2", "--set", f"system=@{kind}:1", "--set", "temperature=0.1").ok())
    remove(bench, kind)
    fork(bench, f"{once}:3", "--set", "model=gpt-4o").ok()
    fork(bench, f"{once}:2").ok()
    assert asked(bench, since=4) == [("You are kind.", 0.1)] * 5


def test_a_value_that_cannot_be_told_apart_any_more_is_named_with_what_to_do(lab: MakeLab) -> None:
    bench = lab(numbered)
    kind = bench.record([word.replace(SYSTEM, "Be kind.") for word in talks("x")]).ok().session
    base = bench.record(talks("a", "b")).ok().session
    edits = ["--set", f"system+=@{kind}:1", "--set", "system+=And brief."]
    once = forked(fork(bench, f"{base}:1", *edits).ok())
    remove(bench, kind)
    calls = bench.provider.calls
    result = fork(bench, f"{once}:2")
    assert result.code == 3
    assert f"system+=@{kind}:1, which the fork {once} changed" in result.talk
    assert f"the session {kind} is no longer in the store" in result.talk
    assert "--set system" in result.talk and "Nothing was run." in result.talk
    assert bench.provider.calls == calls
    fork(bench, f"{once}:2", "--set", "system=Given again.").ok()
    assert [system for system, _ in asked(bench, since=calls)] == ["Given again."]


# Secrets


def test_the_placeholder_of_a_secret_in_an_inherited_edit_is_never_sent(lab: MakeLab) -> None:
    bench = lab(numbered)
    secret = a_secret()
    keys = KEYS | {"OPENAI_API_KEY": secret}
    base = bench.record(talks("a", "b", "c")).ok().session
    once = forked(fork(bench, f"{base}:2", "--set", f"system+=Use {secret} now", env=keys).ok())
    calls = bench.provider.calls
    for step in (2, 3):
        for more in ((), ("--dry-run",)):
            result = fork(bench, f"{once}:{step}", *more, env=keys)
            assert result.code == 2, result.talk
            assert (
                "contains a secret that Rewind does not store" in result.talk and "system+=Use REDACTED" in result.talk
            )
            assert "Nothing was run." in result.talk and "--set 'system" in result.talk
    assert bench.provider.calls == calls
    again = fork(bench, f"{once}:3", "--set", f"system+=Use {secret} now", env=keys).ok()
    (last,) = bodies(bench, since=calls)
    assert last["messages"][0]["content"] == f"{SYSTEM}\nUse {secret} now"
    assert b"Use REDACTED" in bench.body(forked(again), 3, "--request")


def test_the_placeholder_of_a_secret_in_another_session_is_never_sent(lab: MakeLab) -> None:
    bench = lab(numbered)
    secret = a_secret()
    keys = KEYS | {"OPENAI_API_KEY": secret}
    other = bench.record([word.replace(SYSTEM, f"Use {secret}.") for word in talks("x")], env=keys).ok().session
    base = bench.record(talks("a", "b")).ok().session
    calls = bench.provider.calls
    result = fork(bench, f"{base}:2", "--set", f"system=@{other}:1", env=keys)
    assert result.code == 2 and "contains a secret that Rewind does not store" in result.talk
    assert bench.provider.calls == calls


def test_the_placeholder_of_a_secret_in_what_was_edited_by_hand_is_never_sent(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    secret = a_secret()
    keys = {"OPENAI_API_KEY": secret}
    # Not in the command line, which is kept without it.
    own = '"Use " + os.environ["OPENAI_API_KEY"] + "."'
    base = bench.record([word.replace(f'"{SYSTEM}"', own) for word in talks("a", "b")], env=keys).ok().session
    calls = bench.provider.calls
    changed = editor(tmp_path, "text = text.replace('Use ', 'Do use ')") | keys
    result = fork(bench, f"{base}:2", "--edit", env=changed)
    assert result.code == 2 and "contains a secret that Rewind does not store" in result.talk
    assert bench.provider.calls == calls
    beside = editor(tmp_path, "text = text.replace('0.7', '0.1')") | keys
    once = forked(fork(bench, f"{base}:2", "--edit", env=beside).ok())
    fork(bench, f"{once}:2", "--set", "model=gpt-4o", env=keys).ok()
    assert asked(bench, since=calls) == [(f"Use {secret}.", 0.1)] * 2, "the agent's own secret goes out"


def test_a_secret_that_was_written_by_hand_is_asked_for_again(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    secret = a_secret()
    base = bench.record(talks("a", "b")).ok().session
    keys = editor(tmp_path, f"text = text.replace('a clerk', '{secret}')") | {"OPENAI_API_KEY": secret}
    once = forked(fork(bench, f"{base}:2", "--edit", env=keys).ok())
    calls = bench.provider.calls
    result = fork(bench, f"{once}:2", "--set", "temperature=0", env=keys)
    assert result.code == 2, result.talk
    assert "contains a secret that Rewind does not store" in result.talk and "Nothing was sent." in result.talk
    remove(bench, base)
    late = fork(bench, f"{once}:2", "--set", "temperature=0", env=keys)
    assert late.code == 5 and "contains a secret that Rewind does not store" in late.talk, (
        "told as late as that, but not sent"
    )
    assert bench.provider.calls == calls
