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
    note = "not understood: ZeroDivisionError"
    assert claimed is (method != "claims")
    assert (asked == Asked(note=note)) is (method == "asked")
    assert (answered == Answered(note=note)) is (method == "answered")
    assert refused == {"error": {"message": "No."}}
    expected = "the provider 'parrot' (parrot-llm): failed, ZeroDivisionError"
    assert entry_points.problems() == (expected,)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        (PARROT + "API = replace(API, hosts=None)\n", "TypeError: hosts is None instead of a tuple of str"),
        (PARROT + "API = replace(API, hosts='birds.example')\n", "TypeError: hosts is 'birds.example' instead of"),
        (PARROT + "API = replace(API, kind='llm_call')\n", "TypeError: kind is 'llm_call' instead of a StepKind"),
        (PARROT + "API = replace(API, volatile=('perch',))\n", "TypeError: volatile is"),
        (PARROT + "API = replace(API, name='anthropic')\n", "ValueError: the name 'anthropic' is empty or taken"),
    ],
)
def test_an_api_that_is_not_sound_is_left_out(site: Path, source: str, reason: str) -> None:
    installed(site, "parrot-llm", "from dataclasses import replace\n" + source, parrot="API")
    assert outside_apis() == ()
    (problem,) = entry_points.problems()
    assert problem.startswith(f"the provider 'parrot' (parrot-llm): not used, {reason}")


def test_metadata_that_cannot_be_read_costs_the_outside_apis_and_nothing_else(site: Path) -> None:
    installed(site, "parrot-llm", PARROT, parrot="API")
    (site / "odd-1.0.dist-info").mkdir()
    (site / "odd-1.0.dist-info" / "METADATA").write_text("Name: odd\nVersion: 1.0\n")
    (site / "odd-1.0.dist-info" / "entry_points.txt").write_bytes(b"[rewind.providers]\n\xff\xfe = b:c\n")
    assert outside_apis() == ()
    (problem,) = entry_points.problems()
    assert "their metadata cannot be read" in problem
    assert identify(REQUEST.head) is FALLBACK


@pytest.mark.parametrize("wrong", ["Asked(model=123)", "'words'", "Asked(note=b'')"])
def test_values_of_the_wrong_type_count_as_not_read(site: Path, wrong: str) -> None:
    installed(site, "parrot-llm", PARROT + f"API.reader.__class__.asked = lambda self, _: {wrong}\n", parrot="API")
    (api,) = outside_apis()
    assert api.reader.asked(REQUEST) == Asked(note="not understood: TypeError")


def test_only_the_declared_group_is_looked_for(site: Path) -> None:
    (site / "other-1.0.dist-info").mkdir()
    (site / "other-1.0.dist-info" / "entry_points.txt").write_text("[rewind.others]\na = b:c\n")
    (site / "bare-1.0.dist-info").mkdir()
    assert not entry_points.any_declared()
    assert outside.outside_apis() == ()
