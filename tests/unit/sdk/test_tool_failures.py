"""An exception of a tool: kept with its text, raised again as itself where that is possible without importing."""

import datetime
import json
import sys
from typing import Any

import pytest

from rewind.errors import RewindError, ToolFailed
from rewind.sdk.values.failures import restored_failure, serialised_failure


class Missing(LookupError):
    """An exception of the agent's own."""

    def __init__(self, order: str) -> None:
        super().__init__(f"there is no order {order}")


class Shared(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code

    def __str__(self) -> str:
        return f"{self.args[1]} ({self.code})"


def again(error: BaseException) -> Exception:
    return restored_failure("lookup", json.loads(json.dumps(serialised_failure(error))))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("not a number"),
        ValueError(),
        KeyError("order"),
        FileNotFoundError(2, "No such file or directory", "/nowhere"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        TimeoutError("too slow"),
        Shared(7, "overdrawn"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_is_raised_again_as_itself(error: Exception) -> None:
    back = again(error)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.args == error.args


def test_the_text_that_views_show_names_type_and_message() -> None:
    assert serialised_failure(ValueError("not a number"))["error"] == "ValueError: not a number"
    assert serialised_failure(ValueError())["error"] == "ValueError"


def test_notes_stay_with_an_exception() -> None:
    error = ValueError("not a number")
    error.add_note("while reading line 7")
    assert again(error).__notes__ == ["while reading line 7"]


@pytest.mark.parametrize(
    "name",
    [
        "nowhere.to.be.Found",
        "builtins.print",
        "builtins.SystemExit",
        "builtins.KeyboardInterrupt",
        "os.system",
        "x",
        "",
        "rewind.sdk.values.failures.KnownClasses",
    ],
)
def test_what_is_no_exception_here_is_told_of_but_not_built(name: str) -> None:
    back = restored_failure("lookup", {"error": "x", "exception": {"type": name, "message": "what it said"}})
    assert isinstance(back, ToolFailed)
    assert isinstance(back, RewindError)
    assert (back.tool, back.type_name, back.text) == ("lookup", name, "what it said")


class Limited(Exception):
    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.when = datetime.date(2026, 11, 16)


class Sealed(Exception):
    """Who lets nobody write to it, or read it."""

    @property
    def args(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no arguments")

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Laden(Exception):
    __slots__ = ("load",)


def test_what_an_exception_holds_comes_back_and_its_class_is_not_called() -> None:
    back = again(Limited("slow down", code=429))
    assert type(back) is Limited
    assert (back.args, vars(back)) == (("slow down",), {"code": 429, "when": datetime.date(2026, 11, 16)})
    told = again(Missing("4711"))
    assert type(told) is Missing
    assert str(told) == "there is no order 4711"


def test_what_builtin_exceptions_hold_besides_comes_back() -> None:
    failed = again(ImportError("cannot import", name="x", path="/x.py"))
    assert isinstance(failed, ImportError)
    assert (failed.msg, failed.name, failed.path) == ("cannot import", "x", "/x.py")
    try:
        None.nothing  # type: ignore[attr-defined]  # noqa: B018
    except AttributeError as error:
        missing = again(error)
    assert isinstance(missing, AttributeError)
    assert missing.name == "nothing"


def laden() -> Exception:
    error = Laden("heavy")
    error.load = 3  # type: ignore[attr-defined]
    return error


def with_a_handle() -> Exception:
    error = ValueError("no answer")
    error.response = object()  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (laden(), "holds more than can be kept (load)"),
        (with_a_handle(), "holds more than can be kept (response: builtins.object)"),
        (ValueError(object()), "holds more than can be kept (0: builtins.object)"),
        (Sealed(), "cannot be read (RuntimeError)"),
        (ExceptionGroup("several", [ValueError("x")]), "holds more than can be kept"),
    ],
    ids=["slots", "attribute", "argument", "sealed", "group"],
)
def test_an_exception_that_holds_more_than_can_be_kept_is_told_of(error: Exception, why: str) -> None:
    assert why in serialised_failure(error)["exception"]["lost"]
    back = again(error)
    assert isinstance(back, ToolFailed)
    assert back.type_name.endswith(type(error).__name__)


def test_nothing_is_imported_because_of_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where a module would import a name that it is asked for."""
    asked: list[str] = []

    class Lazy(type(sys)):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return ValueError

    monkeypatch.setitem(sys.modules, "lazy_module", Lazy("lazy_module"))
    before = set(sys.modules)
    for name in ("lazy_module.Trap", "antigravity.Error", "xmlrpc.client.Fault"):
        restored_failure("lookup", {"exception": {"type": name, "message": "x"}})
    assert not asked
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"error": "only a text"},
        {"error": "x", "exception": []},
        {"error": "x", "exception": {"type": "builtins.ValueError", "message": "m", "args": 3, "notes": 4}},
        {"error": "x", "exception": {"type": "builtins.KeyError", "args": ["a"], "types": {"/9": "tuple"}}},
    ],
)
def test_a_damaged_record_still_raises_something(answer: dict[str, Any]) -> None:
    assert isinstance(restored_failure("lookup", answer), Exception)
