"""The look-up in codecarbon's table, where it is installed."""

import importlib.util
import subprocess
import sys

import pytest

from carbonlens.app.cpu_power import tdp_of

needs_table = pytest.mark.skipif(
    importlib.util.find_spec("codecarbon") is None, reason="codecarbon is not installed"
)


@needs_table
def test_a_whole_name_is_found_and_named():
    found = tdp_of("AMD EPYC 7763 64-Core Processor")
    assert (found.watts, found.name) == (280.0, "AMD EPYC 7763")
    assert found.source.startswith("codecarbon ")


@pytest.mark.parametrize(
    "name",
    [None, "", "AMD EPYC", "Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel(R) Xeon(R) Processor", "Neoverse-N1"],
)
def test_a_name_that_is_no_model_finds_nothing(name):
    assert tdp_of(name) is None


def test_without_the_extra_there_is_no_match_and_no_error():
    # Another interpreter in which codecarbon cannot be imported.
    script = (
        "import sys\nsys.modules['codecarbon'] = None\n"
        "from carbonlens.app.cpu_power import tdp_of\nassert tdp_of('AMD EPYC 7763') is None\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


@pytest.mark.parametrize(
    "fault",
    ["raise ValueError('numpy changed size')", "raise AttributeError('np.float_')", "x = ", "1 / 0", ""],
)
def test_a_table_that_cannot_be_imported_is_no_match_and_no_error(tmp_path, fault):
    (tmp_path / "codecarbon").mkdir()
    (tmp_path / "codecarbon" / "__init__.py").write_text("__version__ = '0'\n")
    (tmp_path / "codecarbon" / "input.py").write_text(f"{fault}\n")
    script = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "from carbonlens.app.cpu_power import tdp_of\nassert tdp_of('AMD EPYC 7763') is None\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_the_look_up_is_not_imported_with_the_sensor():
    script = (
        "import sys\nimport carbonlens.metering.sensors.cpu_model\nimport carbonlens.app.cpu_power\n"
        "assert not {'codecarbon', 'pandas'} & set(sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
