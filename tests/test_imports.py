"""Imports keep their direction, and what runs on a head node needs Python 3.9 and nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

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


def offending(folder: str, allowed) -> dict[str, set[str]]:
    """By file of a folder the imports that `allowed(file, name)` does not allow."""
    faults = {}
    for file in modules(folder):
        strange = {name for name in imported(file) if not allowed(file, name)}
        if strange:
            faults[str(file.relative_to(ROOT))] = strange
    return faults


def is_testbed(name: str) -> bool:
    return name.startswith("runners.testbeds")


def test_runners_use_the_standard_library_only():
    """`runners` can be copied to a head node as it is; only what SimGrid's own Python runs imports that."""
    simgrid = ROOT / "runners/probes/flows.py"
    library = set(sys.stdlib_module_names) | {"runners"}

    def allowed(file, name):
        top = name.split(".")[0]
        return top in library or (file == simgrid and top == "simgrid")

    assert modules("runners") and not offending("runners", allowed)


def test_runners_run_on_python_3_9():
    """No syntax and no library call that Python 3.9 lacks."""
    options = ["--target=3.9-", "--violations", "--eval-annotations", "--no-tips"]
    vermin = str(Path(sys.executable).with_name("vermin"))
    done = subprocess.run([vermin, *options, ROOT / "runners"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_testbeds_do_not_know_the_runners():
    """A testbed executes commands; it never imports the tool that they belong to.

    trust.py is no testbed: it holds the simulation against HPL's own output.
    """
    files = (ROOT / "runners").glob("*.py")
    tools = {f"runners.{file.stem}" for file in files if "RUNNER =" in file.read_text()}
    above = tools | {"runners.campaign", "runners.plan", "runners.journal"}
    faults = offending(
        "runners/testbeds", lambda file, name: name not in above or file.name == "trust.py"
    )
    assert tools and not faults


def test_only_sessions_jobs_and_the_doctor_import_a_testbed():
    """Testbeds are handed to the engine opened; no runner and not the engine imports one."""

    def allowed(file, name):
        opens = file.parent.name == "testbeds" or file.name in ("doctor.py", "job.py", "session.py")
        return opens or not is_testbed(name)

    assert not offending("runners", allowed)


def test_analysis_executes_nothing():
    """Analysis reads records and transcripts; it runs no campaign, no testbed and no command line."""
    executing = {"runners.campaign", "falloff", "subprocess"}
    faults = offending(
        "analysis", lambda file, name: name not in executing and not is_testbed(name)
    )
    assert modules("analysis") and not faults


def test_models_are_plain_functions():
    """A model needs numpy, scipy's least squares, and the record that describes it."""
    tops = {"numpy", "scipy", "analysis", "importlib", "collections", "dataclasses", "inspect"}
    tops |= {"pathlib", "pkgutil", "runners"}

    def allowed(file, name):
        ours = name.startswith("analysis.") and not name.startswith("analysis.models")
        return name.split(".")[0] in tops and not ours

    assert not offending("analysis/models", allowed)


def test_no_path_tricks():
    """No module edits sys.path; the editable install makes the packages importable."""
    for file in [*modules("analysis"), *modules("runners"), *ROOT.glob("*.py")]:
        assert "sys.path" not in file.read_text(encoding="utf-8"), file
