"""APIs of other distributions: found, loaded, and borne where they are broken."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewind.model.message import Answered, Asked
from rewind.providers import entry_points, outside
from rewind.providers.catalogue import FALLBACK, identify, looks_like_llm, named
from rewind.providers.outside import outside_apis, outside_hosts
from support.exchanges import answer_with, request_of
from support.outside import PARROT, installed

REQUEST = request_of({"bird": "grey", "lines": []}, host="birds.example", target="/aviary/v3/squawk")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the path, in which a test may install something."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(entry_points, "_problems", {})
    for looked_up in (entry_points.any_declared, outside_apis):
        looked_up.cache_clear()
    yield folder
    monkeypatch.undo()
    for looked_up in (entry_points.any_declared, outside_apis):
        looked_up.cache_clear()
    for name in ("parrot_llm", "second_llm"):
        sys.modules.pop(name, None)


def test_where_nothing_is_brought_along_there_is_nothing(site: Path) -> None:
    assert not entry_points.any_declared()
    assert outside_apis() == ()
    assert identify(REQUEST.head) is FALLBACK


def test_what_is_brought_along_is_asked_after_our_own(site: Path) -> None:
    installed(site, "parrot-llm", PARROT, parrot="API")
    api = identify(REQUEST.head)
    assert api.name == "parrot"
    assert named("parrot") is api
    assert looks_like_llm(REQUEST.head)
    assert outside_hosts() == ("birds.example",)
    assert api.reader.asked(REQUEST).model == "grey"
    assert api.reader.answered(REQUEST, answer_with({"words": "Polly"})).text == "Polly"
    assert identify(request_of().head).name == "openai-chat"
    assert entry_points.problems() == ()


def test_one_name_has_one_owner(site: Path) -> None:
    installed(site, "parrot-llm", PARROT, parrot="API")
    installed(site, "second-llm", PARROT, second="API")
    assert len(outside_apis()) == 1
    (problem,) = entry_points.problems()
    assert problem.startswith("the provider 'second' (second-llm): not used, ValueError")


@pytest.mark.parametrize("method", ["claims", "asked", "answered", "refusal"])
def test_a_reader_that_fails_has_read_nothing_and_is_reported_once(site: Path, method: str) -> None:
    broken = f"API.reader.__class__.{method} = lambda self, *_: 1 / 0\n"
    installed(site, "parrot-llm", PARROT + broken, parrot="API")
    (api,) = outside_apis()
    for _ in range(2):
        claimed = api.reader.claims(REQUEST.head)
        asked = api.reader.asked(REQUEST)
        answered = api.reader.answered(REQUEST, answer_with({"words": "Polly"}))
        refused = api.reader.refusal("No.")
    note = "not understood: ZeroDivisionError: division by zero"
    assert claimed is (method != "claims")
    assert (asked == Asked(note=note)) is (method == "asked")
    assert (answered == Answered(note=note)) is (method == "answered")
    assert refused == {"error": {"message": "No."}}
    expected = "the provider 'parrot' (parrot-llm): failed, ZeroDivisionError: division by zero"
    assert entry_points.problems() == (expected,)


def test_only_the_declared_group_is_looked_for(site: Path) -> None:
    (site / "other-1.0.dist-info").mkdir()
    (site / "other-1.0.dist-info" / "entry_points.txt").write_text("[rewind.others]\na = b:c\n")
    (site / "bare-1.0.dist-info").mkdir()
    assert not entry_points.any_declared()
    assert outside.outside_apis() == ()
