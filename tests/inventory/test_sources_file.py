"""The sources file: where it is looked for, what it may hold, and errors that name the place."""

import re
from pathlib import Path

import msgspec
import pytest

from carbonlens.domain.sources import ManagementController, Sources
from carbonlens.errors import ConfigError
from carbonlens.inventory.sources_check import SENSORS
from carbonlens.inventory.sources_file import find, load

PLUG = '[[external]]\nname = "plug"\ncommand = ["meter", "--csv"]\ngain_95 = 0.01\n'


def written(folder, text, name="sources.toml"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def project(folder, text):
    return written(folder, text, "pyproject.toml")


def refused(tmp_path, text):
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, text))
    return caught.value


def test_nothing_is_declared_by_default(tmp_path):
    assert find(tmp_path, {}) == (Sources(), None)


def test_the_variable_comes_before_the_project_and_the_project_before_the_user(tmp_path):
    named = written(tmp_path / "a", "cpu_tdp_w = 1\n")
    mine = written(tmp_path / "config" / "carbonlens", "cpu_tdp_w = 3\n")
    work = tmp_path / "work" / "deep"
    work.mkdir(parents=True)
    file = project(tmp_path / "work", "[tool.carbonlens.sources]\ncpu_tdp_w = 2\n")
    user = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert find(work, {**user, "CARBONLENS_SOURCES": str(named)}).sources.cpu_tdp_w == 1
    assert find(work, user) == (Sources(cpu_tdp_w=2), file)
    file.write_text('[tool.carbonlens]\nledger = "x"\n')
    assert find(work, user) == (Sources(cpu_tdp_w=3), mine)


def test_the_users_file_lies_in_the_home_without_xdg(tmp_path):
    written(tmp_path / ".config" / "carbonlens", "powermetrics = true\n")
    assert find(tmp_path, {"HOME": str(tmp_path)}).sources.powermetrics


def test_only_the_nearest_project_file_counts(tmp_path):
    project(tmp_path, "[tool.carbonlens.sources]\ncpu_tdp_w = 2\n")
    project(tmp_path / "inner", "[project]\nname = 'x'\n")
    assert find(tmp_path / "inner", {}).file is None


def test_a_broken_project_file_of_somebody_else_is_no_concern(tmp_path):
    project(tmp_path, "[project\nname =")
    assert find(tmp_path, {}).file is None


def test_a_broken_project_file_that_speaks_of_carbonlens_is_told(tmp_path):
    project(tmp_path, "[tool.carbonlens.sources]\ncpu_tdp_w = = 2\n")
    with pytest.raises(ConfigError, match="line 2"):
        find(tmp_path, {})


def test_everything_that_can_be_declared(tmp_path):
    text = (
        "cpu_tdp_w = 225.0\ncpu_threads = 128\nleave_out = ['rapl', 'external:plug', 'hwmon:machine']\n"
        + PLUG
        + "[[external]]\nname = 'rails'\npipe = 'meter.fifo'\nrails = ['a', 'b']\ncomponent = 'gpu'\n"
        "[[datasheet]]\ndevice = 'coral'\npower_w = 2\nsource = 'datasheet 1.4'\n"
        "[controller]\nkind = 'redfish'\nurl = 'https://bmc/redfish/v1/Chassis/1'\nca_file = 'ca.pem'\n"
    )
    sources = load(written(tmp_path, text)).sources
    assert [m.name for m in sources.external] == ["plug", "rails"]
    assert sources.external[0].command == ("meter", "--csv")
    assert sources.external[1].pipe == str(tmp_path / "meter.fifo")
    assert sources.datasheet[0].power_w == 2
    assert isinstance(sources.controller, ManagementController)
    assert sources.controller.ca_file == str(tmp_path / "ca.pem")


def test_a_program_beside_the_file_is_taken_from_there_and_one_on_the_path_is_not(tmp_path):
    text = "[[external]]\nname = 'a'\ncommand = ['./read.sh']\n[[external]]\nname = 'b'\ncommand = ['read']\n"
    a, b = load(written(tmp_path, text)).sources.external
    assert a.command == (str(tmp_path / "read.sh"),)
    assert b.command == ("read",)


@pytest.mark.parametrize(
    ("text", "line", "what", "mend"),
    [
        ("cpu_tpd_w = 3\n", 1, "cpu_tpd_w", "did you mean 'cpu_tdp_w'?"),
        (PLUG.replace("gain_95", "gian_95"), 4, "gian_95", "did you mean 'gain_95'?"),
        ("\nzebra = 1\n", 2, "zebra", "known are external"),
        ("[[datasheet]]\ndevice = 'x'\npower_w = 'two'\nsource = 's'\n", 3, "datasheet[0].power_w", "kind"),
        ("[[datasheet]]\ndevice = 'x'\nsource = 's'\n", 1, "lacks 'power_w'", "add power_w"),
        ("[[datasheet]]\ndevice = 'x'\npower_w = 0\nsource = 's'\n", 3, "power_w of x is 0", "above 0"),
        ("[[datasheet]]\ndevice = 'x'\npower_w = nan\nsource = 's'\n", 3, "nan", "above 0"),
        ("[[datasheet]]\ndevice = 'x'\npower_w = 1\nsource = ' '\n", 4, "no source", "date"),
        ("[[external]]\nname = 'x'\n", 1, "needs a command or a pipe", "command ="),
        ("[[external]]\nname = 'x'\ncommand = ['a']\npipe = 'b'\n", 4, "one of them", "pipe ="),
        (PLUG + PLUG, 2, "two external meters are called 'plug'", "own name"),
        (PLUG + "component = 'gpus'\n", 5, "'gpus' is no component", "wall, total"),
        (PLUG.replace("0.01", "1.0"), 4, "gain_95 of plug is 1.0", "0.01 means 1 %"),
        ("external = 3\n", 1, "external is no table", "[[external]]"),
        ("controller = 3\n", 1, "controller is no table", "[controller]"),
        ("[controller]\nkind = 'redfish'\n", 1, "address", "https://"),
        ("[controller]\nkind = 'redfish'\nurl = 'http://bmc/x'\n", 3, "in the clear", "https"),
        ("[controller]\nkind = 'redfish'\nurl = 'https://['\n", 3, "no address", "Chassis"),
        ("[controller]\nkind = 'redfish'\nurl = 'https://[::1/x'\n", 3, "no address", "Chassis"),
        ("[controller]\nkind = 'redfish'\nurl = 'https://bmc:99999/x'\n", 3, "no address", "Chassis"),
        ("[controller]\nkind = 'redfish'\nurl = 'https://bmc:port/x'\n", 3, "no address", "Chassis"),
        ("[controller]\nkind = 'redfish'\nurl = 'https://u:p@bmc/x'\n", 3, "holds an account", "leave"),
        ("[controller]\nkind = 'ipmi'\nurl = 'https://bmc/x'\n", 3, "takes no url", "redfish"),
        ("leave_out = ['rappl']\n", 1, "no sensor 'rappl'", "did you mean 'rapl'?"),
        ("cpu_threads = 4\n", 1, "without cpu_tdp_w", "both"),
        ("cpu_tdp_w = inf\n", 1, "cpu_tdp_w is inf", "above 0"),
        ("cpu_tdp_w = 3000\n", 1, "cpu_tdp_w is 3000", "2000 at most"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_its_mend(tmp_path, text, line, what, mend):
    error = refused(tmp_path, text)
    assert error.where == f"{tmp_path / 'sources.toml'}:{line}"
    assert what in error.what
    assert mend in error.mend
    assert error.exit_code == 2


def test_the_line_is_looked_for_in_our_part_of_a_project_file(tmp_path):
    file = project(tmp_path, "[tool.other]\nzebra = 1\n\n[tool.carbonlens.sources]\nzebra = 1\n")
    with pytest.raises(ConfigError) as caught:
        find(tmp_path, {})
    assert caught.value.where == f"{file}:5"


def test_sources_that_are_no_table(tmp_path):
    project(tmp_path, "[tool.carbonlens]\nsources = 3\n")
    with pytest.raises(ConfigError, match="no table"):
        find(tmp_path, {})


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        find(tmp_path, {"CARBONLENS_SOURCES": str(tmp_path / "nothing.toml")})
    (tmp_path / "bad.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ConfigError, match="UTF-8"):
        load(tmp_path / "bad.toml")


PAGE = Path(__file__).parents[2] / "docs" / "measuring.md"


def test_the_example_of_the_documentation_is_a_sources_file(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    sources = load(written(tmp_path, example)).sources
    assert [m.name for m in sources.external] == ["plug"]
    fields = {f.name for f in msgspec.structs.fields(type(sources.external[0]))}
    assert [f for f in fields - {"pipe"} if not re.search(rf"^{f} =", example, re.MULTILINE)] == []


def test_the_documentation_names_every_sensor():
    told = PAGE.read_text("utf-8")
    assert [name for name in SENSORS if name != "hwmon" and f"`{name}`" not in told] == []
