"""What ``Trace`` writes, and what it does when it cannot."""

import dataclasses
import enum
import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewind
from rewind import Trace
from rewind.trace.plain import plain
from rewind.trace.secrets import OwnSecrets

SOURCES = Path(rewind.__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces" / "run.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def step_of(path: Path, kind: str = "note", /, **fields: Any) -> dict[str, Any]:
    """The line that one step becomes."""
    with Trace(path) as trace:
        trace.step(kind, **fields)
    return lines(path)[-1]


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_says_what_happened_when_and_in_which_run(path: Path) -> None:
    trace = Trace(path)
    trace.step("llm_call", turn=1, content="hello")
    (line,) = lines(path)
    assert list(line) == ["kind", "ts", "run", "turn", "content"]
    assert line["run"] == trace.run_id and len(trace.run_id) == 8 and int(trace.run_id, 16) >= 0
    assert abs(line["ts"] - datetime.now(UTC).timestamp()) < 60
    trace.close()


def test_every_step_is_in_the_file_when_it_returns(path: Path) -> None:
    trace = Trace(path)
    for count in range(1, 4):
        trace.step("note", count=count)
        assert len(lines(path)) == count
    trace.close()


def test_a_field_named_like_ours_keeps_its_value_and_ours_too(path: Path) -> None:
    line = step_of(path, "note", kind="theirs", ts="noon", run=7, run_=8, pid=1, cut=2, blob_ref=3)
    assert line["kind"] == "note" and isinstance(line["ts"], float) and isinstance(line["run"], str)
    assert (line["kind_"], line["ts_"], line["run__"], line["run_"]) == ("theirs", "noon", 7, 8)
    assert (line["pid_"], line["cut_"], line["blob_ref_"]) == (1, 2, 3)


def test_any_name_can_be_a_field_and_the_kind_may_be_said_by_name(path: Path) -> None:
    trace = Trace(path)
    trace.step("note", self=1, trace=2)
    trace.step(kind="final", text="done")
    assert [line["kind"] for line in lines(path)] == ["note", "final"]
    trace.close()


def test_a_run_can_be_named_and_a_second_trace_appends(path: Path) -> None:
    for run in ("monday", "tuesday"):
        with Trace(path, run=run) as trace:
            trace.step("note")
    assert [line["run"] for line in lines(path)] == ["monday", "tuesday"]


def test_only_the_owner_can_read_it(path: Path) -> None:
    step_of(path, "tool_result", output="x" * 5000)
    (blob,) = Path(f"{path}.blobs").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert blob.stat().st_mode & 0o777 == 0o600
    assert blob.parent.stat().st_mode & 0o077 == 0


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Dumps:
    def __init__(self, dump: Any) -> None:
        self.model_dump = dump


@dataclasses.dataclass
class Point:
    x: int
    inner: Any = None


class Pair(NamedTuple):
    left: int
    right: int


class Colour(enum.Enum):
    RED = "red"


class Whole:
    def __index__(self) -> int:
        return 5


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Point(1, Point(2)), {"x": 1, "inner": {"x": 2, "inner": None}}),
        (Dumps(lambda: {"role": "assistant", "at": Point(1)}), {"role": "assistant", "at": {"x": 1, "inner": None}}),
        ({3, 1, 2}, [1, 2, 3]),
        (b"text", "text"),
        (b"\xff\x00", "base64:/wA="),
        (float("nan"), "nan"),
        ([float("-inf")], ["-inf"]),
        ("\ud800", "\ud800"),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "null": "b", "(1, 2)": "c"}),
        (Mute(), "<Mute>"),
        ({"deep": [Mute()]}, {"deep": ["<Mute>"]}),
        (ValueError("boom"), "ValueError: boom"),
        (KeyError(), "KeyError"),
        (Colour.RED, "red"),
        (Whole(), 5),
        (Path("a/b"), "a/b"),
        (datetime(2026, 6, 15, tzinfo=UTC), "2026-06-15 00:00:00+00:00"),
        (10**5000, hex(10**5000)),
        (Point, str(Point)),
        (iter, str(iter)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_json_becomes_its_fields_or_text(path: Path, value: Any, written: Any) -> None:
    assert step_of(path, "llm_call", value=value)["value"] == written


def test_a_named_tuple_is_a_list_as_json_has_it(path: Path) -> None:
    assert step_of(path, value=Pair(1, 2))["value"] == [1, 2]


def test_a_value_inside_itself_is_cut_there(path: Path) -> None:
    loop: dict[str, Any] = {"name": "loop"}
    loop["again"] = [loop]
    assert step_of(path, value=loop)["value"] == {"name": "loop", "again": ["<dict, inside itself>"]}


def test_what_is_nested_too_deep_becomes_text_whatever_the_interpreter_could_bear(path: Path) -> None:
    deep: Any = "bottom"
    for _ in range(3000):
        deep = [deep]
    for nested in (deep, Point(1, deep)):
        line = step_of(path, value=nested)
        assert "nested too deep" in json.dumps(line) and len(json.dumps(line)) < 1000


def test_an_object_that_lies_about_its_fields_is_text(path: Path) -> None:
    def endless() -> dict[str, Any]:
        return {"me": Dumps(endless)}

    def raises() -> dict[str, Any]:
        raise KeyError("no")

    assert "nested too deep" in json.dumps(step_of(path, value=Dumps(endless)))
    assert "Dumps object" in step_of(path, value=Dumps(raises))["value"]
    assert "Dumps object" in step_of(path, value=Dumps(lambda: 3))["value"]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.binary(max_size=8)
    | st.builds(Point, st.integers()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=10,
)


@given(value=ANYTHING)
def test_every_value_is_written_and_read_back_as_json(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    line = step_of(tmp_path_factory.mktemp("any") / "t.jsonl", "llm_call", value=value)
    assert json.loads(json.dumps(line["value"])) == line["value"]


# ── long outputs ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_long_output_is_cut_at_a_character_and_kept_whole_beside_the_trace(path: Path) -> None:
    output = "é" * 5000
    line = step_of(path, "tool_result", id="call_1", output=output)
    assert line["output"] == "é" * 2048 and line["id"] == "call_1"
    assert line["cut"] == {"output": line["blob_ref"]}
    name = line["blob_ref"].removeprefix("sha256:")
    data = (Path(f"{path}.blobs") / name).read_bytes()
    assert data.decode() == output and hashlib.sha256(data).hexdigest() == name


@pytest.mark.parametrize("cap", [0, 1, 2, 3, 4, 5])
def test_the_cut_never_goes_through_a_character(path: Path, cap: int) -> None:
    with Trace(path, cap=cap) as trace:
        trace.step("tool_result", output="a😀b")
    shown = lines(path)[-1]["output"]
    assert "a😀b".startswith(shown) and len(shown.encode()) <= cap and len(shown.encode()) > cap - 4


def test_an_output_of_exactly_the_cap_stays_whole(path: Path) -> None:
    assert "cut" not in step_of(path, "tool_result", output="x" * 4096)
    assert "cut" in step_of(path, "tool_result", output="x" * 4097)


def test_each_long_field_has_its_own_blob_and_the_same_bytes_are_kept_once(path: Path) -> None:
    with Trace(path) as trace:
        for _ in range(3):
            trace.step("tool_result", stdout="o" * 9000, stderr="e" * 9000, code=1)
    line = lines(path)[-1]
    assert set(line["cut"]) == {"stdout", "stderr"} and line["blob_ref"] == line["cut"]["stdout"]
    assert len(list(Path(f"{path}.blobs").iterdir())) == 2


def test_an_output_that_is_no_text_is_cut_as_its_json(path: Path) -> None:
    rows = [{"id": number} for number in range(1000)]
    line = step_of(path, "tool_result", output=rows)
    assert line["output"].startswith('[{"id":0},')
    data = (Path(f"{path}.blobs") / line["blob_ref"][7:]).read_bytes()
    assert json.loads(data) == rows


def test_the_conversation_itself_is_never_cut_and_nothing_is_without_a_cap(path: Path) -> None:
    assert len(step_of(path, "llm_call", content="x" * 100_000)["content"]) == 100_000
    with Trace(path, cap=None) as trace:
        trace.step("tool_result", output="x" * 100_000)
    assert len(lines(path)[-1]["output"]) == 100_000
    assert not Path(f"{path}.blobs").exists()


def test_a_blob_that_cannot_be_kept_is_told_and_the_step_is_there(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.parent.mkdir()
    Path(f"{path}.blobs").write_text("in the way")
    with Trace(path) as trace:
        trace.step("tool_result", output="x" * 5000)
        trace.step("tool_result", output="y" * 5000)
    assert [line["blob_ref"] for line in lines(path)] == [None, None]
    assert capsys.readouterr().err.count("could not keep a long output whole") == 1


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────

KEY = "sk-proj-0a1b2c3d4e5f6g7h"


def test_a_credential_of_the_process_reaches_neither_the_line_nor_a_blob(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("DB_PASSWORD", 'pa"ss\\wörd1')
    with Trace(path, cap=100) as trace:
        trace.step("llm_call", content=f"key {KEY}", **{KEY: 1}, nested={"json": json.dumps({"p": 'pa"ss\\wörd1'})})
        trace.step("tool_result", output="x" * 90 + KEY + "y" * 100)
        monkeypatch.setenv("LATER_TOKEN", "tok-99887766abc")
        trace.step("note", text="tok-99887766abc")
    found = path.read_bytes() + b"".join(blob.read_bytes() for blob in Path(f"{path}.blobs").iterdir())
    for secret in (KEY.encode(), KEY[:12].encode(), "wörd1".encode(), b"tok-99887766abc"):
        assert secret not in found
    assert len(lines(path)) == 3 and b"REDACTED" in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KEYBOARD", "us-international"),
        ("KEYCLOAK_URL", "https://auth.example:8443/realm"),
        ("TOKEN_LIMIT", "128000000"),
        ("SECRET_PATH", "/run/secrets/key1"),
        ("API_KEY", "short"),
        ("HOME", "sk-proj-0a1b2c3d4e5f6g7h"),
    ],
)
def test_what_is_no_secret_is_left_alone(name: str, value: str) -> None:
    assert OwnSecrets.of({name: value}) == OwnSecrets()


@given(before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_a_secret_is_found_inside_base64_wherever_it_begins(before: bytes, after: bytes) -> None:
    import base64

    secrets = OwnSecrets.of({"API_KEY": KEY})
    encoded = base64.b64encode(before + KEY.encode() + after)
    hidden = secrets.removed(encoded)
    assert b"REDACTED" in hidden
    assert KEY.encode() not in base64.b64decode(hidden.ljust(len(hidden) + -len(hidden) % 4, b"="))


# ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_error_that_passes_through_is_recorded_and_raised(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Trace(path):
        _ = 1 / 0
    line = lines(path)[-1]
    assert (line["kind"], line["error"]) == ("error", "ZeroDivisionError: division by zero")
    assert line["where"].startswith(__file__)


@pytest.mark.parametrize(
    ("leaves", "recorded"), [(SystemExit(0), []), (SystemExit(3), ["error"]), (KeyboardInterrupt(), ["error"])]
)
def test_a_program_that_ends_well_leaves_no_error(path: Path, leaves: BaseException, recorded: list[str]) -> None:
    with pytest.raises(type(leaves)), Trace(path):
        raise leaves
    assert [line["kind"] for line in lines(path)] == recorded


def test_closing_twice_is_fine_and_later_steps_are_told_once(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = Trace(path)
    trace.close()
    trace.close()
    for _ in range(5):
        trace.step("note")
    assert lines(path) == []
    assert capsys.readouterr().err.count("\n") == 1


def test_a_trace_that_is_forgotten_gives_its_file_back(path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        Trace(path).step("note")
    assert len(os.listdir("/dev/fd")) <= before + 1


def test_a_trace_goes_on_in_a_process_that_it_is_handed_to(path: Path) -> None:
    first = Trace(path, run="r1", cap=10, durable=True)
    second = pickle.loads(pickle.dumps(first))
    second.step("tool_result", output="x" * 20)
    assert (lines(path)[0]["run"], lines(path)[0]["output"]) == ("r1", "x" * 10)
    assert "pid" not in lines(path)[0]
    first.close()
    second.close()


def test_a_file_that_was_moved_away_is_begun_anew(path: Path) -> None:
    with Trace(path) as trace:
        trace.step("first")
        path.unlink()
        trace.step("second")
    assert [line["kind"] for line in lines(path)] == ["second"]


def test_a_line_that_a_crash_tore_does_not_spoil_the_next(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"kind":"note","ts":1,"run":"a"}\n{"kind":"tool_res')
    with Trace(path) as trace:
        trace.step("note")
        with path.open("ab") as other:
            other.write(b'{"kind":"torn by ano')
        trace.step("final")
    assert [bool(line) and line[-1:] == "}" for line in path.read_text().splitlines()] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_eight_threads_write_eight_thousand_whole_lines(path: Path) -> None:
    trace = Trace(path)

    def work(number: int) -> None:
        for count in range(1000):
            trace.step("note", thread=number, count=count, text="x" * (count % 700))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.close()
    found = lines(path)
    assert len(found) == 8000
    for number in range(8):
        assert [line["count"] for line in found if line["thread"] == number] == list(range(1000))


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────


def places(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "file").write_text("")
    yield tmp_path / "file" / "run.jsonl"
    yield tmp_path
    yield Path("/dev/full")
    yield tmp_path / ("n" * 300)
    yield tmp_path / "nul\0"


@pytest.mark.parametrize("nth", range(5))
def test_a_place_that_cannot_be_written_is_told_and_the_agent_goes_on(
    tmp_path: Path, nth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    place = list(places(tmp_path))[nth]
    with Trace(place) as trace:
        for _ in range(3):
            trace.step("note", text="hello")
    told = capsys.readouterr().err
    assert 1 <= told.count("\n") <= 2 and "the run goes on" in told


def test_a_folder_that_comes_later_is_used_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocker = tmp_path / "traces"
    blocker.write_text("")
    trace = Trace(blocker / "run.jsonl")
    trace.step("lost")
    blocker.unlink()
    trace.step("kept")
    trace.close()
    assert [line["kind"] for line in lines(blocker / "run.jsonl")] == ["kept"]
    assert "lost a step" in capsys.readouterr().err


def test_nothing_the_agent_does_wrong_reaches_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    Trace(42).step("note")  # type: ignore[arg-type]
    Trace(path, cap="many").step("tool_result", output="x" * 9000)  # type: ignore[arg-type]
    Trace(path).step(b"note", **{"": 1})  # type: ignore[arg-type]
    assert [line["kind"] for line in lines(path)] == ["tool_result", "note"]


def test_a_trace_may_go_to_a_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    with Trace(f"/dev/fd/{write}") as trace:
        trace.step("note", text="hello")
    os.close(write)
    assert json.loads(os.read(read, 65536))["text"] == "hello"
    os.close(read)


@pytest.mark.process
def test_importing_the_recorder_loads_nothing_but_the_standard_library() -> None:
    script = (
        "import sys; before = set(sys.modules); import rewind; rewind.Trace; rewind.replay;"
        "import rewind.reading.trace_messages, json;"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})));"
        "print(json.dumps(sorted(name for name in sys.modules if name.startswith('rewind'))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    packages, ours = map(json.loads, done.stdout.splitlines())
    assert set(packages) - {"rewind"} <= sys.stdlib_module_names
    assert not {"asyncio", "socket", "ssl", "subprocess", "urllib", "uuid", "logging"} & set(packages)
    assert all(
        name.startswith(
            ("rewind.trace", "rewind.formats.trace", "rewind.credentials", "rewind.errors", "rewind.version")
        )
        or name
        in (
            "rewind.dataclass",
            "rewind.formats",
            "rewind.reading",
            "rewind.reading.trace_messages",
            "rewind.store",
            "rewind.store.trace_files",
        )
        for name in ours
        if name != "rewind"
    )


@pytest.mark.process
def test_the_recorder_alone_loads_little() -> None:
    script = "import sys; before = set(sys.modules); import rewind; rewind.Trace; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, cwd=SOURCES)
    assert not {"dataclasses", "inspect", "pathlib", "hashlib", "traceback"} & set(done.stdout.split())


def test_plain_values_are_plain_already() -> None:
    value = {"a": [1, 2.5, "x", None, True]}
    assert plain(value) == value
