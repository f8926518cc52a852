"""The project's own promises: one list of packages, a hashed lock, clean notebooks."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """Bare package names, as package indexes compare them."""
    return {re.split(r"[ <>=\[;]", line.strip())[0].lower().replace("_", "-") for line in requirements if line.strip()}


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("environment.yml", project()["dependencies"]),
        ("environment-test.yml", project()["optional-dependencies"]["test"]),
    ],
)
def test_conda_lists_the_same_packages(file, wanted):
    """conda users get what pyproject.toml asks for."""
    listed = names(re.findall(r"^ +- ([^#\n:]+?) *(?:#.*)?$", (ROOT / file).read_text(), re.M))
    conda_names = {"pypandoc-binary": "pypandoc", "matplotlib": "matplotlib-base"}
    missing = {conda_names.get(name, name) for name in names(wanted)} - listed
    assert not missing


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-uv.lock"])
def test_lock_is_hashed_and_names_no_host(lock):
    """Every pinned package has hashes, and no line holds an address."""
    text = (ROOT / lock).read_text()
    assert not re.search(r"https?://|--index-url|--find-links", text)
    blocks = re.split(r"\n(?=[a-zA-Z])", text.strip())
    assert blocks and all("==" in block and "--hash=sha256:" in block for block in blocks)


def test_lock_holds_every_dependency():
    """Nothing that pyproject.toml names is missing from the lock."""
    locked = names(re.findall(r"^([A-Za-z0-9_.-]+)==", (ROOT / "requirements.lock").read_text(), re.M))
    extras = [name for group in project()["optional-dependencies"].values() for name in group]
    assert names([*project()["dependencies"], *extras]) <= locked


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda f: f.stem)
def test_notebooks_are_thin_and_without_outputs(notebook):
    """Few cells, one tagged `parameters`; calls and prose, no logic of its own, no outputs in git."""
    cells = json.loads(notebook.read_text())["cells"]
    assert len(cells) < 15
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    for cell in code:
        source = "".join(cell["source"])
        assert not cell["outputs"] and cell["execution_count"] is None
        assert not re.search(r"^\s*(def|class|for|while)\b|import (re|subprocess)\b", source, re.M), source


def test_every_module_of_the_root_is_installed():
    """The command line imports them wherever it is installed."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {file.name for file in ROOT.glob("*.py")} == set(wheel["include"])


def test_no_path_of_one_machine():
    """Nothing in the tree names a folder of the machine on which it was written."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    texts = [ROOT / name for name in tracked if name.endswith((".py", ".toml", ".md", ".yml", ".ipynb", ".sh"))]
    for file in texts:
        if file.exists() and file.name != Path(__file__).name:
            assert not re.search(r"(?<![\w.])/(work|root|home)/", file.read_text(encoding="utf-8")), file


def test_the_first_notebook_leads_to_all_others():
    """Whoever starts there finds every experiment; from 90 on they frame the report."""
    first, *others = NOTEBOOKS
    experiments = [file.name for file in others if file.stem < "90"]
    assert first.stem == "00_start_here" and len(experiments) > 5
    assert not [name for name in experiments if f"({name})" not in first.read_text(encoding="utf-8")]
