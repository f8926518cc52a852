"""Imports keep their direction, and what runs on a head node needs Python 3.9 and nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(file: Path) -> set[str]:
    """The full names of all modules that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: relative import"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def tops(file: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(file)}


@pytest.mark.parametrize("file", modules("runners"), ids=lambda f: str(f.relative_to(ROOT)))
def test_runners_use_the_standard_library_only(file):
    """`runners` can be copied to a head node as it is; only what SimGrid's own Python runs imports that."""
    simgrid = {"simgrid"} if file == ROOT / "runners/probes/flows.py" else set()
    assert tops(file) <= set(sys.stdlib_module_names) | {"runners"} | simgrid


def test_runners_run_on_python_3_9():
    """No syntax and no library call that Python 3.9 lacks."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("vermin")),
            "--target=3.9-",
            "--violations",
            "--eval-annotations",
            "--no-tips",
            str(ROOT / "runners"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# trust.py is no testbed: it holds the simulation against HPL's own output.
TESTBEDS = [file for file in modules("runners/testbeds") if file.name != "trust.py"]


@pytest.mark.parametrize("file", TESTBEDS, ids=lambda f: f.name)
def test_testbeds_do_not_know_the_runners(file):
    """A testbed executes commands; it never imports the tool that they belong to."""
    tools = {
        f"runners.{path.stem}"
        for path in (ROOT / "runners").glob("*.py")
        if "RUNNER =" in path.read_text()
    }
    assert tools and not imported(file) & (
        tools | {"runners.campaign", "runners.plan", "runners.journal"}
    )


@pytest.mark.parametrize("file", modules("runners"), ids=lambda f: str(f.relative_to(ROOT)))
def test_only_nobody_in_runners_imports_a_testbed(file):
    """Testbeds are handed to the engine opened; no runner and not the engine imports one, only
    sessions, jobs and the doctor do."""
    if file.parent.name != "testbeds" and file.name not in ("doctor.py", "job.py", "session.py"):
        assert not {name for name in imported(file) if name.startswith("runners.testbeds")}


@pytest.mark.parametrize("file", modules("analysis"), ids=lambda f: str(f.relative_to(ROOT)))
def test_analysis_executes_nothing(file):
    """Analysis reads records and transcripts; it runs no campaign, no testbed and no command line."""
    assert not imported(file) & {"runners.campaign", "falloff", "subprocess"}
    assert not {name for name in imported(file) if name.startswith("runners.testbeds")}


@pytest.mark.parametrize("file", modules("analysis/models"), ids=lambda f: f.name)
def test_models_are_plain_functions(file):
    """A model needs numpy and the record that describes it."""
    assert tops(file) <= {
        "numpy",
        "analysis",
        "importlib",
        "collections",
        "dataclasses",
        "inspect",
        "pathlib",
        "pkgutil",
        "runners",
    }
    assert not {
        n
        for n in imported(file)
        if n.startswith("analysis.") and not n.startswith("analysis.models")
    }


def test_no_path_tricks():
    """No module edits sys.path; the editable install makes the packages importable."""
    for file in [*modules("analysis"), *modules("runners"), *ROOT.glob("*.py")]:
        assert "sys.path" not in file.read_text(encoding="utf-8"), file
