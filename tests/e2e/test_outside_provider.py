"""An API that another distribution brings is recorded, shown, compared and replayed like one of ours."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.answers import json_answer
from support.lab import Lab
from support.outside import PARROT, installed
from support.provider import FakeProvider
from support.script import Answer, Playbook, Request
from support.trust import PROVIDER_NAMES, Trust

pytestmark = pytest.mark.e2e

BIRDS = "birds.example"
AGENT = """
import json, os, sys, urllib.request, uuid
perch = os.environ.get("PERCH") or uuid.uuid4().hex
for words in sys.argv[1:]:
    body = {"bird": "grey", "perch": perch, "volume": 3, "lines": [{"words": words}]}
    request = urllib.request.Request(
        "https://birds.example/aviary/v3/squawk", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        print(json.load(answer)["words"], flush=True)
"""


def asks(*questions: str) -> list[str]:
    return [sys.executable, "-c", AGENT, *questions]


def parrot(request: Request) -> Answer:
    heard = request.json()["lines"][-1]["words"]
    seeds = {"heard": 4, "spoken": 3}
    return json_answer(request, {"squawk": f"s{request.hit}", "bird": "grey-2", "words": heard, "seeds": seeds})


@pytest.fixture
def aviary(trust: Trust, tmp_path: Path) -> Iterator[Callable[[Playbook], Lab]]:
    with ExitStack() as open_providers:

        def build(playbook: Playbook) -> Lab:
            names = (*PROVIDER_NAMES, BIRDS)
            provider = open_providers.enter_context(FakeProvider(playbook, trust=trust, names=names))
            return Lab(tmp_path, trust, provider, hosts=names)

        yield build


def test_its_calls_are_recorded_shown_compared_and_replayed(aviary: Callable[[Playbook], Lab], tmp_path: Path) -> None:
    lab = aviary(parrot)
    lab.env["PYTHONPATH"] = str(installed(tmp_path / "site", "parrot-llm", PARROT, parrot="API"))
    recorded = lab.record(asks("Polly", "cracker")).ok().sound()
    assert recorded.text.splitlines() == ["Polly", "cracker"]
    first = recorded.session

    rows = lab.steps(first)
    assert [(row["kind"], row["provider"], row["model"], row["text"]) for row in rows] == [
        ("llm_call", "parrot", "grey-2", "Polly"),
        ("llm_call", "parrot", "grey-2", "cracker"),
    ]
    assert [(row["tokens_in"], row["tokens_out"]) for row in rows] == [(4, 3), (4, 3)]
    screen = lab.rewind("inspect", first).ok().text
    assert "grey-2" in screen
    assert "Polly" in screen
    shown = lab.rewind("inspect", f"{first}:1").ok().text
    assert "Polly" in shown
    assert "volume" in shown

    second = lab.record(asks("Polly", "seeds")).ok().session
    compared = lab.rewind("diff", first, second)
    assert "cracker" in compared.text
    assert "seeds" in compared.text

    replayed = lab.replay(first).ok().sound()
    assert replayed.stdout == recorded.stdout


def test_without_the_distribution_its_recordings_are_plain_http(
    aviary: Callable[[Playbook], Lab], tmp_path: Path
) -> None:
    lab = aviary(parrot)
    where = {"PYTHONPATH": str(installed(tmp_path / "site", "parrot-llm", PARROT, parrot="API"))}
    recorded = lab.record(asks("Polly"), env=where).ok()
    assert json.loads(lab.body(recorded.session, 1))["words"] == "Polly"
    assert "Polly" in lab.rewind("inspect", f"{recorded.session}:1").ok().text


@pytest.mark.parametrize(
    ("source", "trouble"),
    [
        ("import no_such_module_of_anybody\nAPI = None\n", "not used, ModuleNotFoundError"),
        ("API = 'parrot'\n", "not used, TypeError: a str instead of a rewind.providers.api.Api"),
        ("raise SystemError('worse')\n", "not used, SystemError: worse"),
        (PARROT.replace('return head.method == "POST" and ', "raise KeyError(1) or "), "failed, KeyError"),
        (PARROT.replace("answer = read_answer(response)", "raise OSError('no beak')"), "failed, OSError"),
    ],
)
def test_a_broken_one_costs_a_remark_and_nothing_else(
    aviary: Callable[[Playbook], Lab], tmp_path: Path, source: str, trouble: str
) -> None:
    lab = aviary(parrot)
    # Which fields differ from run to run, only the API could have said.
    lab.env |= {"PYTHONPATH": str(installed(tmp_path / "site", "parrot-llm", source, parrot="API")), "PERCH": "left"}
    recorded = lab.record(asks("Polly"), options=["--host", BIRDS]).ok().sound()
    assert recorded.text == "Polly\n"
    assert recorded.talk.count(f"the provider 'parrot' (parrot-llm): {trouble}") == 1
    assert lab.body(recorded.session, 1) != b""
    replayed = lab.replay(recorded.session).ok().sound()
    assert replayed.stdout == recorded.stdout
