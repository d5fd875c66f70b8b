"""Flow files where mitmproxy is not: what the user is told. With mitmproxy they are read end to end."""

import importlib.util

import pytest

from rewind.errors import EnvironmentProblem
from rewind.formats.mitmproxy_flows import read_flows


def test_without_mitmproxy_the_way_there_is_told() -> None:
    assert importlib.util.find_spec("mitmproxy") is None, "mitmproxy cannot live beside current SDKs (ADR 0001)"
    with pytest.raises(EnvironmentProblem) as problem:
        read_flows(b"4:type;")
    assert problem.value.message == "Reading a flow file needs mitmproxy's own reader."
    assert problem.value.hint is not None
    for words in ("mitmdump -nr FILE --set hardump=flows.har", "rewind import flows.har", "pip install mitmproxy"):
        assert words in problem.value.hint
