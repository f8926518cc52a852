"""The project's own promises: one list of packages, a hashed lock, clean notebooks."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from analysis import catalogue

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def names(requirements) -> set[str]:
    """Bare package names, as package indexes compare them."""
    return {
        re.split(r"[ <>=\[;]", line.strip())[0].lower().replace("_", "-") for line in requirements
    }


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("environment.yml", PROJECT["dependencies"]),
        ("environment-test.yml", PROJECT["optional-dependencies"]["test"]),
    ],
)
def test_conda_lists_the_same_packages(file, wanted):
    """conda users get what pyproject.toml asks for."""
    text = (ROOT / file).read_text()
    listed = names(re.findall(r"^ +- ([^#\n:]+?) *(?:#.*)?$", text, re.M))
    conda = {"pypandoc-binary": "pypandoc", "matplotlib": "matplotlib-base"}
    assert {conda.get(name, name) for name in names(wanted)} <= listed


@pytest.mark.parametrize("file", ["environment.yml", "environment-test.yml"])
def test_conda_finds_versions_that_go_together(file, tmp_path):
    """A real solver says so, where there is one and its channel answers; nothing is installed."""
    solver = shutil.which("micromamba") or shutil.which("conda")
    if not solver:
        pytest.skip(f"{file} is not solved: there is no micromamba and no conda here")
    verbs = ["create"] if solver.endswith("micromamba") else ["env", "create"]
    done = subprocess.run(
        [solver, *verbs, "--dry-run", "--prefix", str(tmp_path / "new"), "--file", ROOT / file],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    said = done.stdout + done.stderr
    if re.search(r"resolve host|ConnectionError|HTTPError|onnection failed|Download error", said):
        pytest.skip(f"{file} is not solved: its channel does not answer")
    assert not done.returncode, said


def test_binder_and_container_have_what_the_makefile_installs():
    """Binder reads the same lists; the container's user is an ordinary one when `make setup` runs."""
    binder = ROOT / "binder"
    assert (binder / "apt.txt").read_text() == (ROOT / "debian-packages.txt").read_text()
    (line,) = (binder / "requirements.txt").read_text().split("\n")[:-1]
    assert (binder / line.removeprefix("-r ")).resolve() == ROOT / "requirements.lock"
    steps = (ROOT / "Containerfile").read_text()
    assert steps.index("USER reader") < steps.index("RUN make setup")


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-uv.lock"])
def test_lock_is_hashed_and_names_no_host(lock):
    """Every pinned package has hashes, and no line holds an address; nothing that pyproject.toml names is missing."""
    text = (ROOT / lock).read_text()
    assert not re.search(r"https?://|--index-url|--find-links", text)
    blocks = re.split(r"\n(?=[a-zA-Z])", text.strip())
    assert blocks and all("==" in block and "--hash=sha256:" in block for block in blocks)
    extras = [name for group in PROJECT["optional-dependencies"].values() for name in group]
    wanted = {"uv"} if "uv" in lock else names([*PROJECT["dependencies"], *extras])
    assert wanted <= names(re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.M))


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
        logic = r"^\s*(def|class|for|while)\b|import (re|subprocess)\b"
        assert not re.search(logic, source, re.M), source


def test_every_module_of_the_root_is_installed():
    """The command line imports them wherever it is installed."""
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {file.name for file in ROOT.glob("*.py")} == set(wheel["include"])


def test_no_path_of_one_machine():
    """Nothing in the tree names a folder of the machine on which it was written."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    for name in listed.split("\n"):
        if (
            name.endswith((".py", ".toml", ".md", ".yml", ".ipynb", ".sh"))
            and (ROOT / name).exists()
        ):
            text = (ROOT / name).read_text(encoding="utf-8")
            is_this = ROOT / name == Path(__file__)
            assert is_this or not re.search(r"(?<![\w.])/(work|root|home)/", text), name


def test_the_first_notebook_leads_to_all_others():
    """Whoever starts there finds every experiment, with its question; from 90 on they frame the report."""
    rows, files = catalogue.contents().splitlines()[2:], [file.name for file in NOTEBOOKS[1:]]
    linked = [re.findall(r"\((\w+\.ipynb)\)", row) for row in rows]
    assert linked == [[name] for name in files if name < "90"]
    assert all("?" in row for row in rows)
