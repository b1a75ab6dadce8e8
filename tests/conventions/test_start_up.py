"""Start-up stays light: what the import and the help may load."""

import subprocess
import sys

import pytest

HEAVY = (
    "torch onnxruntime onnx numpy scipy pandas duckdb narwhals pydantic codecarbon rich weasyprint altair "
    "vl_convert jinja2 sklearn typer click pygments markdown_it msgspec psutil pynvml"
).split()
HEAVY_FOR_HELP = [name for name in HEAVY if name not in {"click", "msgspec"}]


def loaded(code: str) -> set[str]:
    """Return the modules a fresh interpreter holds after the code."""
    script = f"{code}\nimport sys; print(*{{m.partition('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_no_third_party_library():
    assert loaded("import carbonlens").isdisjoint(HEAVY)


def test_public_names_are_listed_without_loading_them():
    assert loaded("import carbonlens; assert 'track' in dir(carbonlens)").isdisjoint(HEAVY)


def test_an_unknown_name_is_an_attribute_error():
    import carbonlens

    with pytest.raises(AttributeError, match="nothing_here"):
        _ = carbonlens.nothing_here


def test_every_public_name_loads():
    import carbonlens

    for name in carbonlens.__all__:
        assert getattr(carbonlens, name) is not None


def test_tracking_loads_only_core():
    heavy = set(HEAVY) - {"msgspec", "psutil", "pynvml"}
    code = "import carbonlens, tempfile\nwith carbonlens.track('s', ledger=tempfile.mkdtemp()): pass"
    assert loaded(code).isdisjoint(heavy)


def test_help_loads_no_heavy_library():
    code = (
        "from click.testing import CliRunner\n"
        "from carbonlens.cli.commands import built\n"
        "assert CliRunner().invoke(built(), ['--help']).exit_code == 0"
    )
    assert loaded(code).isdisjoint(HEAVY_FOR_HELP)


ENTRY = (
    "import sys, tempfile\n"
    "sys.argv = ['carbonlens', *{arguments!r}]\n"
    "from carbonlens.cli.main import main\n"
    "try: main()\n"
    "except SystemExit as end: assert not end.code, end.code"
)


def test_the_entry_loads_no_heavy_library_for_its_help():
    assert loaded(ENTRY.format(arguments=["--help"])).isdisjoint(HEAVY_FOR_HELP)


def test_a_plain_run_loads_only_core(tmp_path):
    arguments = ["run", "--ledger", str(tmp_path), "--", sys.executable, "-c", "pass"]
    assert loaded(ENTRY.format(arguments=arguments)).isdisjoint(set(HEAVY) - {"msgspec", "psutil", "pynvml"})


def test_a_public_name_is_not_replaced_by_the_room_of_its_name():
    code = (
        "import carbonlens, carbonlens.compare.study, carbonlens.app.report\n"
        "from carbonlens.compare.study import compare_study\n"
        "assert callable(carbonlens.compare) and callable(carbonlens.report), carbonlens.compare\n"
        "first = carbonlens.compare\n"
        "assert carbonlens.compare is first"
    )
    loaded(code)
