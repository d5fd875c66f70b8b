"""The one writing thread, and the agent's streams on their way to it."""

import threading
from pathlib import Path

from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.harness import Outputs
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library

PATIENCE = 10.0
START = SessionStart(
    id=SessionId("7f3a2b9c"), name=None, command=("agent",), cwd="/", started=1_790_000_000.0, rewind_version="0"
)


def thread_of(home: Path) -> WriterThread:
    return WriterThread(SessionWriter.create(home, START))


def end(writer_thread: WriterThread) -> None:
    writer_thread.close(
        lambda: writer_thread.writer.end(ended=START.started + 1, exit_code=0, redactions=0, remarks=())
    )


def stored(home: Path, stream: str) -> bytes | None:
    library = Library(home)
    with library.open(library.find("7f3a2b9c")) as reader:
        return reader.output(stream)  # type: ignore[arg-type]


def test_work_is_done_in_order_on_one_thread_and_all_of_it_before_the_pen_is_closed(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    done: list[tuple[int, int]] = []
    for number in range(200):
        writer_thread.later(lambda number=number: done.append((number, threading.get_ident())))  # type: ignore[misc]
    end(writer_thread)
    assert [number for number, _ in done] == list(range(200))
    assert len({thread for _, thread in done}) == 1
    assert done[0][1] != threading.get_ident()


def test_whoever_asks_is_told_the_result(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    told: list[object] = []
    writer_thread.ask(lambda: 42, told.append)
    end(writer_thread)
    assert told == [42]


def test_a_piece_of_work_that_fails_is_kept_in_mind_and_the_rest_is_still_written(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    told: list[object] = []

    def fails() -> None:
        raise ValueError("a bug")

    writer_thread.later(fails)
    writer_thread.ask(fails, told.append)
    writer_thread.ask(lambda: "after", told.append)
    end(writer_thread)
    assert told == [None, "after"]
    assert isinstance(writer_thread.failure, ValueError)
    session = Library(tmp_path).find("7f3a2b9c")
    assert session.end is not None, "the last line was written all the same"


def test_whoever_is_told_and_stumbles_does_not_stop_the_writer_thread(tmp_path: Path) -> None:
    """An event loop that was closed meanwhile, for instance."""
    writer_thread = thread_of(tmp_path)

    def stumbles(_result: object) -> None:
        raise RuntimeError("the loop is closed")

    writer_thread.ask(lambda: 1, stumbles)
    end(writer_thread)
    assert Library(tmp_path).find("7f3a2b9c").end is not None


def test_steps_are_numbered_once_each_from_one_also_by_many_threads(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.extend(writer_thread.next_index() for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(numbers) == list(range(1, 401))
    end(writer_thread)


def test_streams_are_kept_apart_and_one_that_stayed_silent_is_known_to_have_been_there(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    outputs = Outputs(writer_thread, Redactor(Secrets.from_environment({})))
    outputs.tee("stdout", b"one ")
    outputs.tee("stdin", b"typed")
    outputs.tee("stdout", b"two")
    outputs.finish()
    end(writer_thread)
    assert stored(tmp_path, "stdout") == b"one two"
    assert stored(tmp_path, "stdin") == b"typed"
    assert stored(tmp_path, "stderr") == b""


def test_a_stdin_that_was_never_there_is_told_from_an_empty_one(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    Outputs(writer_thread, Redactor(Secrets.from_environment({}))).finish()
    end(writer_thread)
    assert stored(tmp_path, "stdin") is None


def test_a_secret_printed_in_two_halves_is_not_stored(tmp_path: Path) -> None:
    secret = b"sk-live-9f8e7d6c5b4a39281706abcdef"
    writer_thread = thread_of(tmp_path)
    redactor = Redactor(Secrets.from_environment({"OPENAI_API_KEY": secret.decode()}))
    outputs = Outputs(writer_thread, redactor)
    outputs.tee("stdout", b"key=" + secret[:11])
    outputs.tee("stdout", secret[11:] + b"!\n")
    outputs.finish()
    end(writer_thread)
    kept = stored(tmp_path, "stdout")
    assert kept is not None and kept.startswith(b"key=") and kept.endswith(b"!\n")
    assert secret not in kept and secret[:11] not in kept and secret[11:] not in kept
    assert redactor.count == 1


def test_what_was_held_back_at_the_end_is_not_lost(tmp_path: Path) -> None:
    """The beginning of a secret that never came is ordinary output."""
    writer_thread = thread_of(tmp_path)
    outputs = Outputs(writer_thread, Redactor(Secrets.from_environment({"OPENAI_API_KEY": "sk-live-9f8e7d6c5b4a3928"})))
    outputs.tee("stdout", b"prefix sk-live-9f8e")
    outputs.finish()
    outputs.finish()
    end(writer_thread)
    assert stored(tmp_path, "stdout") == b"prefix sk-live-9f8e"


def test_what_two_streams_say_at_the_same_time_is_not_mixed(tmp_path: Path) -> None:
    writer_thread = thread_of(tmp_path)
    outputs = Outputs(writer_thread, Redactor(Secrets.from_environment({})))

    def speak(name: str) -> None:
        for _ in range(300):
            outputs.tee(name, name.encode() * 10)  # type: ignore[arg-type]

    threads = [threading.Thread(target=speak, args=(name,)) for name in ("stdout", "stderr")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    outputs.finish()
    end(writer_thread)
    assert stored(tmp_path, "stdout") == b"stdout" * 3000
    assert stored(tmp_path, "stderr") == b"stderr" * 3000
