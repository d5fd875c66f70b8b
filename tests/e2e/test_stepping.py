"""``rewind replay --step`` and ``--until`` with a real agent, the real gateway, and a person at a terminal."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rewind.store.library import Library
from support.answers import openai_chat
from support.cli import KEYS, Result
from support.forks import TALKS, bodies, numbered, talks
from support.lab import Gate, Lab, _read_door
from support.rawhttp import Reader, ask, message
from support.script import Answer, Playbook, Request
from support.terminal import Seat, eventually

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]
HOST, CHAT = "api.openai.com", "/v1/chat/completions"
JSON = [("Content-Type", "application/json")]


def stepping(lab: Lab, session: str, *args: str, env: dict[str, str] | None = None, **more: Any) -> Seat:
    """``rewind replay SESSION ARGS`` in a terminal; the provider is gone, unless a test brings it back."""
    return Seat(["replay", session, *lab.upstream, *args], lab.home, env, cwd=lab.folder, **more)


def sessions(lab: Lab) -> list[str]:
    return [session.id for session in Library(lab.home).sessions()]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # One that has ended, and whose parent has not looked yet, is gone as well.
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


# A person at each step


def test_a_stop_shows_what_is_about_to_be_sent_and_enter_goes_from_step_to_step(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    bench.provider.go_away()
    with stepping(bench, base, "--step", "2") as seat:
        shown = seat.sees("step 2> ")
        assert shown.startswith("answer 1 to a"), "steps before it are served at once"
        assert "before step 2 of 3  llm_call  gpt-4o-mini" in shown
        assert "temperature 0.7" in shown and "3 messages, 228 bytes" in shown
        assert "= 2 entries as in step 1" in shown
        assert "+ added  user  1 character  messages[3]\n  b\n" in shown
        assert "the recording answers  200  21 tokens in, 8 out\n  answer 2 to b\n" in shown
        seat.type("\n")
        shown = seat.sees("step 3> ")
        assert shown.startswith("\nanswer 2 to b"), "only now the agent has it"
        assert "= 4 entries as in step 2" in shown
        seat.type("\n")
        code, shown = seat.ends()
    assert code == 0
    assert "answer 3 to c" in shown
    assert "3/3 steps replayed · 0 network calls" in shown and "output identical\n" in shown
    assert sessions(bench) == [base], "a replay writes no session"


def test_c_runs_on_without_a_stop_and_d_shows_the_whole_request_without_its_keys(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    with stepping(bench, base, "--step", "1", env=KEYS) as seat:
        shown = seat.sees("step 1> ")
        assert "2 entries, 17 characters" in shown, "of the first call all is new"
        seat.type("nonsense\n")
        assert "c: run on to the end" in seat.sees("step 1> ")
        seat.type("d\n")
        shown = seat.sees("step 1> ")
        assert f"POST https://{HOST}{CHAT}" in shown and '"temperature": 0.7' in shown
        assert KEYS["OPENAI_API_KEY"] not in shown
        seat.type("c\n")
        code, shown = seat.ends()
    assert code == 0 and "> " not in shown
    assert "3/3 steps replayed" in shown and "output identical\n" in shown


WITH_CHILD = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], stdout=subprocess.DEVNULL)
with open("pids", "w") as pids:
    print(os.getpid(), child.pid, file=pids)
{TALKS}
child.kill()
"""
"""The same, and it has started another process."""


def all_gone(lab: Lab) -> bool:
    return all(is_gone(int(pid)) for pid in (lab.folder / "pids").read_text().split())


@pytest.mark.parametrize("word", ["q\n", "\x04"], ids=["q", "the end of input"])
def test_q_ends_the_agent_and_all_it_started(lab: MakeLab, word: str) -> None:
    bench = lab(numbered)
    base = bench.record([sys.executable, "-c", WITH_CHILD, "a", "b", "c"]).ok().session
    with stepping(bench, base, "--step", "2") as seat:
        seat.sees("step 2> ")
        seat.type(word)
        code, shown = seat.ends()
    assert code == 0
    assert "1/3 steps replayed · stopped before step 2 · 0 network calls" in shown
    assert "output identical so far\n" in shown
    eventually(lambda: all_gone(bench))
    assert sessions(bench) == [base]


def test_ctrl_c_at_the_prompt_ends_an_agent_that_would_not_hear_it_with_130(lab: MakeLab) -> None:
    bench = lab(numbered)
    deaf = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{TALKS}"
    base = bench.record([sys.executable, "-c", deaf, "a", "b"]).ok().session
    with stepping(bench, base, "--step", "2") as seat:
        seat.sees("step 2> ")
        seat.type("\x03")
        code, shown = seat.ends()
    assert code == 130
    assert "interrupted before step 2" in shown and "Traceback" not in shown


def test_an_agent_that_ends_while_a_person_thinks_needs_no_answer(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    code = TALKS.replace("timeout=30", "timeout=30 if text == 'a' else 1")
    impatient = [sys.executable, "-c", code, "a", "b"]
    with stepping(bench, base, "--step", "2", "--", *impatient) as seat:
        seat.sees("the agent has ended")
        ended, shown = seat.ends()
    assert ended == 1, "it gave up: another exit code"
    assert "1/2 steps replayed" in shown and "miss" not in shown


def test_the_terminal_is_asked_also_where_stdout_goes_elsewhere(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    file = bench.folder / "out"
    with file.open("wb") as out, stepping(bench, base, "--step", "2", stdout=out) as seat:
        seat.sees("step 2> ")
        seat.type("\n")
        code, shown = seat.ends()
    assert code == 0 and "answer" not in shown.partition("step 2")[0]
    assert file.read_text() == "answer 1 to a\nanswer 2 to b\n", "stdout is the agent's alone"


def test_whoever_kills_it_at_the_prompt_finds_the_store_as_it_was(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session

    def stored() -> dict[str, bytes]:
        kept = bench.home / "sessions"
        return {str(path): path.read_bytes() for path in kept.rglob("*") if path.is_file()}

    before = stored()
    with stepping(bench, base, "--step", "2") as seat:
        seat.sees("step 2> ")
        seat.process.send_signal(signal.SIGKILL)
        seat.process.wait()
    assert stored() == before
    assert bench.replay(base).code == 0
    left = [path.name for path in (bench.home / "run").iterdir()]
    assert left == ["ca"], "the next run has swept up; the CA is kept"


def test_the_agent_reads_its_recorded_input_while_the_terminal_is_ours(lab: MakeLab) -> None:
    bench = lab(numbered)
    code = f"import sys\nsys.argv[1:] = sys.stdin.read().split()\n{TALKS}"
    base = bench.record([sys.executable, "-c", code], stdin=b"a b").ok().session
    with stepping(bench, base, "--step", "2") as seat:
        seat.sees("step 2> ")
        seat.type("\n")
        assert seat.ends()[0] == 0


# Editing


def editor(folder: Path, code: str) -> dict[str, str]:
    """An editor that does what the code says to ``text``, and tells whether it has a terminal."""
    script = folder / "editor.py"
    script.write_text(
        "import os, pathlib, sys\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n"
        f"assert os.isatty(0) and os.isatty(1)\n{code}\npath.write_text(text)\n"
    )
    return KEYS | {"EDITOR": f"{sys.executable} {script}", "TMPDIR": str(folder)}


def test_e_opens_the_request_in_an_editor_and_goes_on_as_a_fork(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    env = editor(tmp_path, "text = text.replace('\"b\"', '\"B\"').replace('0.7', '0.2')")
    out = bench.folder / "out"
    with out.open("wb") as stdout, stepping(bench, base, "--step", "2", env=env, stdout=stdout) as seat:
        seat.sees("step 2> ")
        assert bench.provider.calls == 3
        seat.type("e\n")
        code, shown = seat.ends()
    assert code == 0, shown
    assert f"→ rewind fork {base}:2, edited by hand: the agent starts again" in shown
    second, third = bodies(bench, since=3)
    assert (second["messages"][-1]["content"], second["temperature"]) == ("B", 0.2)
    assert (third["messages"][-1]["content"], third["temperature"]) == ("c", 0.7)
    new, old = sessions(bench)
    assert old == base and f"· → {new}\n" in shown
    with Library(bench.home).open(Library(bench.home).find(new)) as reader:
        origin = reader.recording().session.start.forked_from
    assert origin is not None and (origin.session, origin.step, origin.by_hand) == (base, 2, True)
    assert out.read_text().splitlines()[-3:] == ["answer 1 to a", "answer 4 to B", "answer 5 to c"]
    assert bench.replay(new).code == 0


def test_an_editor_that_changes_nothing_leaves_the_agent_waiting(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    with stepping(bench, base, "--step", "2", env=editor(tmp_path, "pass")) as seat:
        seat.sees("step 2> ")
        seat.type("e\n")
        assert "You changed nothing in the editor." in seat.sees("step 2> ")
        seat.type("\n")
        code, shown = seat.ends()
    assert code == 0 and "output identical\n" in shown
    assert sessions(bench) == [base] and bench.provider.calls == 2


def test_a_fork_takes_the_drift_that_the_replay_took(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("How warm is it in Oslo?", "b")).ok().session
    other = ["--allow-drift", "--step", "2", "--", *talks("How warm is it in Rome?", "b")]
    env = editor(tmp_path, "text = text.replace('\"b\"', '\"B\"')")
    with stepping(bench, base, *other, env=env) as seat:
        assert "differs from the recorded step 2, and is accepted for it" in seat.sees("step 2> ")
        seat.type("e\n")
        code, shown = seat.ends()
    assert code == 0, shown
    (live,) = bodies(bench, since=2)
    said = [message["content"] for message in live["messages"]]
    assert (said[1], said[-1]) == ("How warm is it in Rome?", "B"), "what the agent sends, with the edit"


# Parallel calls: the test itself is the agent


def question(text: str) -> bytes:
    return message(
        "POST",
        CHAT,
        HOST,
        json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}).encode(),
        JSON,
    )


def echo(request: Request) -> Answer:
    return openai_chat(request, f"to {request.json()['messages'][-1]['content']}")


def recorded(lab: Lab, *texts: str) -> str:
    with lab.recording() as gate, gate.tls(HOST) as line:
        for text in texts:
            ask(line, question(text))
    return gate.ended().session


@contextmanager
def at_the_door(lab: Lab, session: str, *args: str) -> Iterator[tuple[Seat, Gate]]:
    """A replay in a terminal whose agent makes no call of its own, and ends when the test is through."""
    held = os.open(lab.folder / "door.fifo", os.O_RDWR)
    log = lab.folder / "seat.err"
    with stepping(lab, session, *args) as seat, log.open("w+b") as err:
        try:
            yield seat, Gate(_read_door(lab.folder / "door.json", seat.process, err), seat.process)
        finally:
            os.close(held)
        assert seat.ends()[0] == 0, seat.seen


def said(reader: Reader) -> str:
    body = reader.next().body
    text: str = json.loads(body)["choices"][0]["message"]["content"]
    return text


def test_it_goes_by_step_and_whoever_comes_while_stopped_waits_in_order(lab: MakeLab) -> None:
    bench = lab(echo)
    base = recorded(bench, "1", "2", "3", "4")
    with at_the_door(bench, base, "--step", "2") as (seat, gate), ExitStack() as lines:

        def send(text: str) -> Reader:
            line = lines.enter_context(gate.tls(HOST))
            line.sendall(question(text))
            return Reader(line)

        assert said(send("3")) == "to 3", "the stop is before step 2, and a later step may come first"
        second = send("2")
        seat.sees("step 2> ")
        fourth = send("4")
        assert said(send("1")) == "to 1", "a step before it is served at once, whoever waits"
        seat.type("\n")
        assert said(second) == "to 2"
        seat.sees("step 4> ")
        seat.type("\n")
        assert said(fourth) == "to 4"
    assert "4/4 steps replayed" in seat.seen and "miss" not in seat.seen


def test_a_client_that_gives_up_and_asks_again_is_answered_and_not_asked_about_twice(lab: MakeLab) -> None:
    bench = lab(echo)
    base = recorded(bench, "1", "2")
    with at_the_door(bench, base, "--step", "2") as (seat, gate):
        with gate.tls(HOST) as impatient:
            impatient.sendall(question("2"))
            seat.sees("step 2> ")
        with gate.tls(HOST) as line, gate.tls(HOST) as witness:
            line.sendall(question("2"))
            # Once this is answered, the gateway has seen both: the one that left and the one that came.
            ask(witness, question("1"))
            seat.type("\n")
            assert said(Reader(line)) == "to 2"
    assert "step 2> " not in seat.seen
    assert "2/2 steps replayed" in seat.seen and "miss" not in seat.seen


# Without a person


def test_without_a_terminal_step_is_one_clear_sentence_and_runs_nothing(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record([sys.executable, "-c", WITH_CHILD, "a"]).ok().session
    (bench.folder / "pids").unlink()
    result = bench.replay(base, "--step", "1")
    assert result.code == 2
    assert "--step asks you how to go on, but there is no terminal" in result.talk
    assert f"--until 1, and rewind inspect {base}:1 --context" in result.talk
    assert not (bench.folder / "pids").exists()


@pytest.mark.parametrize("option", ["--step", "--until"])
def test_a_step_that_is_not_there_is_3_with_the_nearest(lab: MakeLab, option: str) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    result = bench.replay(base, option, "7", "--json")
    assert result.code == 3
    assert f"{base} has no step 7; it has 2, from 1 to 2." in result.talk
    assert f"rewind inspect {base}:2" in result.talk


def test_both_at_once_are_refused(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a")).ok().session
    assert bench.replay(base, "--step", "1", "--until", "1").code == 2


def test_as_json_a_stop_needs_nobody_and_tells_what_would_be_sent(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    result = bench.replay(base, "--step", "2", "--json").ok()
    told = json.loads(result.stdout)
    assert told["schema"] == "rewind/replay@1"
    assert (told["played"], told["total"], told["output"]) == (1, 3, "beginning")
    assert told["stopped"] == {"step": 2, "when": "before"} and told["unasked"] is None
    sent = told["about_to_send"]
    assert (sent["step"], sent["model"], sent["parameters"]) == (2, "gpt-4o-mini", {"temperature": 0.7})
    assert (sent["bytes"], sent["compared_with"]) == (228, 1)
    assert [entry["text"] for entry in sent["entries"]] == ["You are a clerk.", "a", "answer 1 to a", "b"]
    assert [change["fate"] for change in sent["changes"]] == ["same", "same", "added", "added"]
    assert sent["recorded"]["text"] == "answer 2 to b"


# Up to a step


def replayed(lab: Lab, session: str, *args: str) -> tuple[Result, dict[str, Any]]:
    result = lab.replay(session, "--json", *args)
    return result, json.loads(result.stdout)


def test_until_plays_that_step_too_and_ends_the_agent_when_it_asks_for_more(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record([sys.executable, "-c", WITH_CHILD, "a", "b", "c"]).ok().session
    result = bench.replay(base, "--until", "2").ok()
    assert result.text == "answer 1 to a\nanswer 2 to b\n", "what it did with the answer is still seen"
    assert "2/3 steps replayed · stopped after step 2 as asked · 0 network calls" in result.talk
    assert "output identical so far" in result.talk and "exit code" not in result.talk
    eventually(lambda: all_gone(bench))
    result, told = replayed(bench, base, "--until", "2")
    assert result.code == 0
    assert (told["played"], told["output"], told["misses"]) == (2, "beginning", [])
    assert told["stopped"] == {"step": 2, "when": "after"}
    assert "about_to_send" not in told


def test_until_the_last_step_is_a_whole_replay(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    result, told = replayed(bench, base, "--until", "2")
    assert (result.code, told["output"], told["stopped"]) == (0, "identical", None)


def test_until_tells_another_output_a_miss_and_a_step_that_was_never_asked(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    loud = [sys.executable, "-c", TALKS.replace("print(said,", "print(said.upper(),"), "a", "b", "c"]
    result = bench.replay(base, "--until", "2", "--", *loud)
    assert result.code == 1
    assert "-answer 1 to a\n-answer 2 to b\n+ANSWER 1 TO A\n" in result.talk
    assert "answer 3" not in result.talk, "what would have come later is not missing"
    missed, told = replayed(bench, base, "--until", "2", "--", *talks("a", "x", "c"))
    assert (missed.code, len(told["misses"]), told["unasked"]) == (4, 1, 2)
    later, told = replayed(bench, base, "--until", "2", "--", *talks("a", "b", "x"))
    assert (later.code, told["misses"]) == (0, []), "what comes after it is not looked at"
    never = bench.replay(base, "--until", "2", "--", *talks("a"))
    assert never.code == 4
    assert "Step 2 was never asked: the run ended without coming to it." in never.talk


def test_words_of_an_agent_that_is_told_to_end_do_not_count(lab: MakeLab) -> None:
    bench = lab(numbered)
    polite = (
        "import signal\n"
        "def goodbye(*_):\n    print('Goodbye.', flush=True)\n    raise SystemExit(0)\n"
        f"signal.signal(signal.SIGTERM, goodbye)\n{TALKS}"
    )
    base = bench.record([sys.executable, "-c", polite, "a", "b"]).ok().session
    result = bench.replay(base, "--until", "1").ok()
    assert result.text == "answer 1 to a\nGoodbye.\n"
    assert "output identical so far" in result.talk


def test_until_waits_for_parallel_calls_that_lag_behind(lab: MakeLab) -> None:
    bench = lab(echo)
    base = recorded(bench, "1", "2", "3", "4")
    with bench.replaying(base, "--until", "3", "--json") as gate, ExitStack() as lines:

        def send(text: str) -> Reader:
            line = lines.enter_context(gate.tls(HOST))
            line.sendall(question(text))
            return Reader(line)

        assert [said(send(text)) for text in "13"] == ["to 1", "to 3"]
        send("4")
        assert said(send("2")) == "to 2", "step 2 was still to come"
        gate.process.wait()
    told = json.loads(gate.ended().stdout)
    assert (gate.ended().code, told["played"], told["stopped"]) == (0, 3, {"step": 3, "when": "after"})


ASKS = TALKS.replace("sys.argv[1:]:", "sys.argv[1:]:\n    messages.clear()")
"""The same, but each question stands for itself."""


def test_with_live_answers_the_session_that_is_kept_ends_where_the_run_was_stopped(lab: MakeLab) -> None:
    bench = lab(echo)
    base = bench.record([sys.executable, "-c", ASKS, "a", "b", "c"]).ok().session
    again = [sys.executable, "-c", ASKS, "a", "new", "b", "c"]
    words = ["replay", base, *bench.upstream, "--on-miss", "live", "--until", "2", "--json", "--", *again]
    told = json.loads(bench.rewind(*words, env=KEYS).stdout)
    assert (told["played"], told["live"], told["stopped"]) == (2, 1, {"step": 2, "when": "after"})
    assert [row["tape"] for row in bench.steps(told["kept_as"])] == [1, None, 2, None]
    assert [row["status"] for row in bench.steps(told["kept_as"])] == [200, 200, 200, None]
    assert bench.provider.calls == 4
