"""Who decides whether a test may go live."""

import pytest

from rewind.pytest_plugin.cassette_paths import CassetteAction, action_for
from rewind.pytest_plugin.modes import Mode, choose_mode


def test_a_developer_records_once_and_a_ci_server_never() -> None:
    assert choose_mode(None, {}, "").mode is Mode.ONCE
    assert choose_mode(None, {"CI": "true"}, "").mode is Mode.NONE
    assert choose_mode(None, {"CI": "false"}, "").mode is Mode.ONCE


def test_the_flag_goes_before_the_variable_and_both_before_ci_and_the_ini_file() -> None:
    everything = {"CI": "1", "REWIND_PYTEST_MODE": "new"}
    assert choose_mode("all", everything, "once").mode is Mode.ALL
    assert choose_mode(None, everything, "once").mode is Mode.NEW
    assert choose_mode(None, {"CI": "1"}, "all").mode is Mode.NONE
    assert choose_mode(None, {}, "all").mode is Mode.ALL


def test_only_this_very_command_and_ci_overrule_a_mark() -> None:
    assert choose_mode(None, {}, "none").for_test(Mode.ALL) is Mode.ALL
    assert choose_mode(None, {}, "").for_test(None) is Mode.ONCE
    assert choose_mode(None, {"CI": "1"}, "").for_test(Mode.ALL) is Mode.NONE
    assert choose_mode("none", {}, "").for_test(Mode.ALL) is Mode.NONE


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
        choose_mode(flag, environ, ini)
    assert named in str(problem.value)


@pytest.mark.parametrize(
    ("mode", "with_cassette", "without", "shared"),
    [
        (Mode.NONE, CassetteAction.PLAY, CassetteAction.MISSING, CassetteAction.PLAY),
        (Mode.REVIEW, CassetteAction.PLAY, CassetteAction.MISSING, CassetteAction.PLAY),
        (Mode.ONCE, CassetteAction.PLAY, CassetteAction.RECORD, CassetteAction.EXTEND),
        (Mode.NEW, CassetteAction.EXTEND, CassetteAction.RECORD, CassetteAction.EXTEND),
        (Mode.ALL, CassetteAction.RECORD, CassetteAction.RECORD, CassetteAction.EXTEND),
        (Mode.REWRITE, CassetteAction.RECORD, CassetteAction.RECORD, CassetteAction.EXTEND),
    ],
)
def test_what_each_mode_does(
    mode: Mode, with_cassette: CassetteAction, without: CassetteAction, shared: CassetteAction
) -> None:
    assert action_for(mode, exists=True, written_now=False) is with_cassette
    assert action_for(mode, exists=False, written_now=False) is without
    assert action_for(mode, exists=True, written_now=True) is shared
