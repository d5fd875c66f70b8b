"""A recording never breaks the program: whatever its values, its folder and its threads do, it runs as if alone."""

import asyncio
import logging
import random
import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rewind
from rewind.store.library import Library
from support.script import routes
from support.sdk_bench import MakeBench, SdkBench

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("plain_variables")]


@pytest.fixture
def one(bench: MakeBench) -> SdkBench:
    return bench(routes({}))


class Lazy:
    def __get__(self, row: object, kind: type) -> Any:
        if row is None:
            return self
        raise RuntimeError("not in a session any more")

    def __set__(self, row: object, value: Any) -> None: ...


@dataclass
class Row:
    number: int
    relation: Any = Lazy()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


@rewind.tool
def fetch(number: int) -> Row:
    return Row(number)


@rewind.tool
def number_of(row: Row) -> int:
    return row.number


@rewind.tool
def refuse(row: Row) -> None:
    raise ValueError(row)


@rewind.tool
async def rows() -> Any:
    yield Row(1)


def test_rows_whose_fields_raise_pass_through_tools_untouched(one: SdkBench) -> None:
    async def items() -> list[Any]:
        return [item async for item in rows()]

    with one.session() as run:
        row = fetch(7)
        assert (type(row), row.number, number_of(row)) == (Row, 7, 7)
        with pytest.raises(ValueError) as caught:
            refuse(row)
        assert caught.value.args[0] is row
        assert asyncio.run(items())[0].number == 1
        assert rewind.note("seen", row=row) is True
    assert run.result is not None
    assert [step.request.kind for step in run.steps] == ["tool_call"] * 4 + ["note"]
    remarks = "\n".join(run.result.remarks)
    assert "tool fetch: a replay cannot give back what it returned" in remarks
    assert "tool refuse: a replay raises ToolFailed instead" in remarks
    with one.session(mode="replay"), pytest.raises(rewind.ResultLost):
        fetch(7)


class Handle:
    """Of which every one looks the same."""


@rewind.tool
def query(handle: Handle, text: str) -> str:
    return text


def test_arguments_that_cannot_be_told_apart_are_remarked_on(one: SdkBench) -> None:
    with one.session() as run:
        assert [query(Handle(), "a"), query(Handle(), "b")] == ["a", "b"]
    assert run.result is not None
    (remark,) = run.result.remarks
    assert remark.startswith("tool query: arguments of the class Handle cannot be told apart")


@rewind.tool
def kind(value: Any) -> str:
    return type(value).__name__


def test_a_text_is_not_answered_with_the_result_of_a_number(one: SdkBench) -> None:
    with one.session():
        assert kind(Decimal("1")) == "Decimal"
    with one.session(mode="replay"):
        assert kind(Decimal("1")) == "Decimal"
    with pytest.raises(rewind.ReplayMiss), one.session(mode="replay"):
        kind("1")


def test_a_recording_that_cannot_begin_for_any_reason_leaves_the_program_alone(
    one: SdkBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with one.session("before"):
        kind(1)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with caplog.at_level(logging.WARNING, "rewind"):
        for _ in range(2):
            with one.session() as run:
                assert kind(1) == "int"
            assert run.unrecorded
            assert run.result is None
    assert caplog.text.count("Not recording") == 1
    with pytest.raises(FileNotFoundError), one.session("before", mode="replay"):
        kind(1)


@rewind.tool
def bulky(number: int) -> str:
    return random.Random(number).randbytes(4000).hex()


def test_steps_that_could_not_be_written_are_no_steps_of_the_run(one: SdkBench) -> None:
    """The disk is full after some steps: the program goes on, and the run counts what was kept."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with one.session() as run:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
        try:
            assert [len(bulky(number)) for number in range(20)] == [8000] * 20
            kept_so_far = run.steps
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert run.result is not None and run.result.broken is not None
    library = Library(one.home)
    with library.open(library.find(str(run.id))) as reader:
        written = [step.index for step in reader.recording().steps if step.response is not None]
    assert 0 < len(written) < 20
    assert [step.index for step in run.steps] == [step.index for step in kept_so_far] == written


def test_sessions_need_no_place_in_the_loops_executor(one: SdkBench) -> None:
    async def agent() -> int:
        async with one.session():
            return 1

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        waiting = loop.run_in_executor(None, lambda: asyncio.run_coroutine_threadsafe(agent(), loop).result(20))
        return [await asyncio.wait_for(waiting, 30)]

    assert asyncio.run(main()) == [1]


@dataclass(frozen=True)
class Frozen(Exception):
    """Which lets no note be written to it."""

    text: str


def test_an_exception_that_takes_no_notes_is_raised_as_it_is(one: SdkBench) -> None:
    def agent() -> None:
        try:
            kind(2)
        except rewind.ReplayMiss:
            raise Frozen("mine") from None

    with one.session():
        kind(1)
    with pytest.raises(Frozen) as caught, one.session(mode="replay"):
        agent()
    assert caught.value.text == "mine"
