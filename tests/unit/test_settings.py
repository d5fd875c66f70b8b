from pathlib import Path

import pytest

from rewind.errors import ExitCode, UsageError
from rewind.settings import mistyped_variables, read_settings, size_in, user_file, without_password


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "me"), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write_user_file(env: dict[str, str], text: str) -> Path:
    file = user_file(env)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def origin_kinds(settings, name: str) -> list[str]:
    return [origin.kind for origin in settings.origin(name)]


def test_with_nothing_said_the_store_is_in_the_users_data_folder(env, project, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    settings = read_settings(env=env, cwd=project)
    assert settings.home == Path(env["HOME"]) / ".local/share/rewind"
    assert settings.values() == {
        "home": settings.home,
        "hosts": (),
        "all_hosts": False,
        "ignore": (),
        "match": None,
        "ignore_text": (),
        "telemetry": (),
        "durable": False,
        "upstream_proxy": None,
        "upstream_ca": None,
        "keep_days": None,
        "max_size": None,
        "keep": (),
        "prices": {},
    }
    assert all(origin_kinds(settings, name) == ["default"] for name in settings.values())


def test_xdg_data_home_counts_and_a_relative_one_is_ignored(env, project, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    assert read_settings(env=env | {"XDG_DATA_HOME": "/data"}, cwd=project).home == Path("/data/rewind")
    relative = read_settings(env=env | {"XDG_DATA_HOME": "data"}, cwd=project).home
    assert relative == Path(env["HOME"]) / ".local/share/rewind"


def test_on_a_mac_the_store_is_in_application_support(env, project, monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    home = read_settings(env=env, cwd=project).home
    assert home == Path(env["HOME"]) / "Library/Application Support/rewind"


def test_each_nearer_source_of_the_store_wins(env, project):
    write_user_file(env, 'home = "/user/store"')
    assert read_settings(env=env, cwd=project).home == Path("/user/store")

    (project / ".rewind").mkdir()
    settings = read_settings(env=env, cwd=project)
    assert (settings.home, origin_kinds(settings, "home")) == (project / ".rewind", ["folder"])

    (project / "pyproject.toml").write_text('[tool.rewind]\nhome = "stores/rewind"\n')
    settings = read_settings(env=env, cwd=project)
    assert (settings.home, origin_kinds(settings, "home")) == (project / "stores/rewind", ["project"])

    env["REWIND_HOME"] = "/variable"
    settings = read_settings(env=env, cwd=project)
    assert (settings.home, str(settings.origin("home")[0])) == (Path("/variable"), "REWIND_HOME")

    settings = read_settings({"home": "/flag"}, env=env, cwd=project)
    assert (settings.home, str(settings.origin("home")[0])) == (Path("/flag"), "--home")


def test_an_empty_variable_is_a_variable_not_set(env, project):
    assert origin_kinds(read_settings(env=env | {"REWIND_HOME": ""}, cwd=project), "home") == ["default"]


def test_lists_add_up_nearest_first_without_repeats(env, project):
    write_user_file(env, 'hosts = ["c.example", "a.example"]')
    (project / "pyproject.toml").write_text('[tool.rewind]\nhosts = ["b.example"]\n')
    env["REWIND_HOSTS"] = " b.example , ,d.example"
    settings = read_settings({"hosts": ("a.example",)}, env=env, cwd=project)
    assert settings.hosts == ("a.example", "b.example", "d.example", "c.example")
    assert origin_kinds(settings, "hosts") == ["flag", "environment", "project", "user"]


def test_the_nearest_pyproject_that_speaks_to_us_is_read_from_below(env, project):
    (project / "pyproject.toml").write_text('[tool.rewind]\nignore = ["metadata.id"]\n')
    inner = project / "packages" / "one"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text('[project]\nname = "not-rewind"\n')
    assert read_settings(env=env, cwd=inner).ignore == ("metadata.id",)


def test_a_broken_pyproject_that_does_not_mention_us_is_none_of_our_business(env, project):
    (project / "pyproject.toml").write_text("[tool.other\n")
    assert origin_kinds(read_settings(env=env, cwd=project), "home") == ["default"]


@pytest.mark.parametrize(("word", "value"), [("1", True), ("TRUE", True), ("off", False), ("no", False)])
def test_a_switch_may_be_a_word_in_a_variable(env, project, word, value):
    assert read_settings(env=env | {"REWIND_DURABLE": word}, cwd=project).durable is value


def test_a_flag_that_says_no_outweighs_a_variable_that_says_yes(env, project):
    assert read_settings({"durable": False}, env=env | {"REWIND_DURABLE": "1"}, cwd=project).durable is False


def test_dashes_and_underscores_are_the_same_in_files(env, project):
    (project / "pyproject.toml").write_text("[tool.rewind]\nall-hosts = true\n")
    assert read_settings(env=env, cwd=project).all_hosts is True


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[tool.rewind]\nhots = []\n", ["pyproject.toml [tool.rewind]", "'hots'", "'hosts'"]),
        ('[tool.rewind]\nhosts = "a"\n', ["pyproject.toml", "'hosts'", "a list of strings", "'a'"]),
        ("[tool.rewind]\nhosts = [1]\n", ["'hosts'", "a list of strings"]),
        ('[tool.rewind]\ndurable = "yes"\n', ["'durable'", "true or false", "'yes'"]),
        ("[tool.rewind]\nhome = 3\n", ["'home'", "a path"]),
        ("[tool.rewind]\nupstream_proxy = 3\n", ["'upstream_proxy'", "a string"]),
        ("[tool.rewind]\nprices = 3\n", ["pyproject.toml [tool.rewind]", "'prices'", "a table", "3"]),
        ("[tool.rewind.prices]\nmine = 3\n", ["pyproject.toml [tool.rewind]", "'mine'", "a table such as"]),
        ("[tool.rewind.prices]\nmine = { inputs = 1 }\n", ["'mine'", "'inputs'", "cache_read"]),
        ('[tool.rewind.prices]\nmine = { input = "1" }\n', ["'mine'", "'input'", "US dollars", "'1'"]),
        ("[tool.rewind.prices]\nmine = { input = -1 }\n", ["'mine'", "'input'", "-1"]),
        ("[tool.rewind.prices]\nmine = { input = nan }\n", ["'mine'", "'input'", "nan"]),
        ("[tool.rewind.prices]\nmine = { input = true }\n", ["'mine'", "'input'", "True"]),
        ("[tool.rewind.prices]\nmine = { input = 1 }\n", ["'mine'", "needs 'output' as well"]),
        ("[tool.rewind.prices]\nmine = { context = 1.5 }\n", ["'mine'", "'context'", "number of tokens"]),
        (
            "[tool.rewind.prices]\nmine-3.5 = { input = 1, output = 1 }\n",
            ["'mine-3'", "a name with a dot needs quotes", '"mine-3.5"'],
        ),
        ("[tool]\nrewind = 3\n", ["must be a table"]),
        ("[tool.rewind\n", ["pyproject.toml", "not valid TOML"]),
        ('[tool.rewind]\nhome = "~nobody-of-that-name/x"\n', ["'home'"]),
    ],
)
def test_a_bad_file_is_one_sentence_with_file_and_key(env, project, text, parts):
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_settings(env=env, cwd=project)
    assert caught.value.exit_code is ExitCode.USAGE
    told = f"{caught.value.message} {caught.value.hint}"
    assert all(part in told for part in parts), told


def test_prices_add_up_model_by_model_and_the_project_wins(env, project):
    write_user_file(env, "[prices]\nmine = { input = 1, output = 2 }\nother = { context = 8000 }\n")
    (project / "pyproject.toml").write_text(
        '[tool.rewind.prices]\n"team-*" = { input = 5, output = 5 }\nmine = { input = 3, output = 4.5 }\n'
    )
    settings = read_settings(env=env, cwd=project)
    assert settings.prices == {
        "team-*": {"input": 5, "output": 5},
        "mine": {"input": 3, "output": 4.5},
        "other": {"context": 8000},
    }
    assert list(settings.prices) == ["team-*", "mine", "other"]
    assert origin_kinds(settings, "prices") == ["project", "user"]


def test_prices_are_too_much_for_a_variable(env, project):
    with pytest.raises(UsageError, match="REWIND_PRICES: 'prices' must be a table in a file"):
        read_settings(env=env | {"REWIND_PRICES": "mine=3"}, cwd=project)


def test_a_bad_variable_names_itself(env, project):
    with pytest.raises(UsageError, match="REWIND_DURABLE: 'durable' must be true or false, not 'maybe'"):
        read_settings(env=env | {"REWIND_DURABLE": "maybe"}, cwd=project)


def test_a_value_that_is_outweighed_is_not_looked_at(env, project):
    settings = read_settings({"durable": True}, env=env | {"REWIND_DURABLE": "maybe"}, cwd=project)
    assert settings.durable is True


def test_a_variable_that_is_nearly_a_setting_is_pointed_out():
    env = {"REWIND_DURABEL": "1", "REWIND_DEBUG": "1", "REWIND_HOME": "/x", "REWIND_GATEWAY_URL": "x"}
    assert mistyped_variables(env) == {"REWIND_DURABEL": "REWIND_DURABLE"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://proxy:8080", "http://proxy:8080"),
        ("http://me:secret@proxy:8080", "http://me:***@proxy:8080"),
        ("http://[broken", "http://[broken"),
    ],
)
def test_the_password_of_a_proxy_is_not_shown(url, shown):
    assert without_password(url) == shown


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("20G", 20 * 1024**3),
        ("20g", 20 * 1024**3),
        ("20 GiB", 20 * 1024**3),
        ("20GB", 20 * 1000**3),
        ("1.5M", 3 * 512 * 1024),
        ("500B", 500),
        ("0B", 0),
    ],
)
def test_a_size_is_read_as_the_systems_tools_read_it(written: str, count: int) -> None:
    assert size_in(written) == count


@pytest.mark.parametrize("written", ["", "G", "20", "0", "-1G", "1e9", "1,5G", "20 Gb/s", "١٢", "1GI", "9" * 40])
def test_what_is_no_size_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size_in(written)
