"""Who decides whether a test may go live."""

import pytest

from rewind.pytest_plugin.options import Act, Mode, act_for, choose


def test_a_developer_records_once_and_a_ci_server_never() -> None:
    assert choose(None, {}, "").mode is Mode.ONCE
    assert choose(None, {"CI": "true"}, "").mode is Mode.NONE
    assert choose(None, {"CI": "false"}, "").mode is Mode.ONCE


def test_the_flag_goes_before_the_variable_and_both_before_ci_and_the_ini_file() -> None:
    everything = {"CI": "1", "REWIND_PYTEST_MODE": "new"}
    assert choose("all", everything, "once").mode is Mode.ALL
    assert choose(None, everything, "once").mode is Mode.NEW
    assert choose(None, {"CI": "1"}, "all").mode is Mode.NONE
    assert choose(None, {}, "all").mode is Mode.ALL


def test_only_this_very_command_and_ci_overrule_a_mark() -> None:
    assert choose(None, {}, "none").of(Mode.ALL) is Mode.ALL
    assert choose(None, {}, "").of(None) is Mode.ONCE
    assert choose(None, {"CI": "1"}, "").of(Mode.ALL) is Mode.NONE
    assert choose("none", {}, "").of(Mode.ALL) is Mode.NONE


@pytest.mark.parametrize(
    ("flag", "environ", "ini", "named"),
    [
        ("never", {}, "", "--rewind is 'never'"),
        (None, {"REWIND_PYTEST_MODE": "of"}, "", "REWIND_PYTEST_MODE is 'of'"),
        (None, {}, "x", "rewind_mode is 'x'"),
        (None, {"CI": "1"}, "x", "rewind_mode is 'x'"),
    ],
)
def test_a_mode_that_is_none_is_named_with_where_it_stands(
    flag: str | None, environ: dict[str, str], ini: str, named: str
) -> None:
    with pytest.raises(ValueError, match="it can be none, once, new, all, rewrite, review") as problem:
        choose(flag, environ, ini)
    assert named in str(problem.value)


@pytest.mark.parametrize(
    ("mode", "with_cassette", "without", "shared"),
    [
        (Mode.NONE, Act.PLAY, Act.MISSING, Act.PLAY),
        (Mode.REVIEW, Act.PLAY, Act.MISSING, Act.PLAY),
        (Mode.ONCE, Act.PLAY, Act.RECORD, Act.EXTEND),
        (Mode.NEW, Act.EXTEND, Act.RECORD, Act.EXTEND),
        (Mode.ALL, Act.RECORD, Act.RECORD, Act.EXTEND),
        (Mode.REWRITE, Act.RECORD, Act.RECORD, Act.EXTEND),
    ],
)
def test_what_each_mode_does(mode: Mode, with_cassette: Act, without: Act, shared: Act) -> None:
    assert act_for(mode, there=True, made_now=False) is with_cassette
    assert act_for(mode, there=False, made_now=False) is without
    assert act_for(mode, there=True, made_now=True) is shared
