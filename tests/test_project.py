"""The project's own promises: packages, notebooks, the direction of imports, and pages that name
what is there.
"""

import ast
import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import own_results
import pytest
import yaml
from command_line import run

from analysis import commands, experiment
from analysis.descriptions import testbeds
from analysis.paths import ROOT
from analysis.statements import notebooks
from analysis.subjects import program
from analysis.watch import nightly
from analysis.wording import number
from runners import tools
from runners.testbeds import simulated

LACKING = simulated.unavailable(testbeds.read("smith").plain())
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


# What conda gives where Debian has a package, and what comes with conda itself.
FROM_THE_SYSTEM = {
    "conda-forge",
    "python",
    "pip",
    "pandoc",
    "c-compiler",
    "iperf3",
    "make",
    "openblas",
    "openmpi",
}


def names(requirements) -> set[str]:
    """Bare package names, as package indexes compare them."""
    first = (re.split(r"[ <>=\[;]", line.strip())[0] for line in requirements)
    return {name.lower().replace("_", "-") for name in first}


def test_conda_lists_the_same_packages():
    """conda users get what pyproject.toml asks for, and the tests' what these ask for."""
    conda = {"pypandoc-binary": "pypandoc", "matplotlib": "matplotlib-base"}
    for file, asked in (
        ("environment.yml", PROJECT["dependencies"]),
        ("packaging/environment-test.yml", PROJECT["optional-dependencies"]["test"]),
    ):
        lines = re.findall(r"^ +- ([^#\n:]+?) *(?:#.*)?$", (ROOT / file).read_text(), re.M)
        assert {conda.get(name, name) for name in names(asked)} <= names(lines)
    locked = names((ROOT / "packaging/requirements.lock").read_text().splitlines())
    pip = {asked: name for name, asked in conda.items()}
    listed = {pip.get(name, name) for name in names(lines) - FROM_THE_SYSTEM}
    assert listed <= locked | set(conda.values()), "make lock"
    assert "python -m runners.build" in (ROOT / "environment.yml").read_text()  # HPL


def test_binder_and_container_have_what_is_needed():
    """The lists of the Makefile, an ordinary user at `make setup`, one version."""
    binder = ROOT / ".binder"
    assert (binder / "apt.txt").read_text() == (ROOT / "packaging/debian-packages.txt").read_text()
    line = (binder / "requirements.txt").read_text().strip()
    assert (binder / line.removeprefix("-r ")).resolve() == ROOT / "packaging/requirements.lock"
    steps = (ROOT / "packaging/Containerfile").read_text()
    assert steps.index("USER reader") < steps.index("RUN make setup")
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.more
def test_a_wheel_is_refused_with_the_remedy(tmp_path):
    """It would lack notebooks and data; what `make setup` installs is the checkout itself."""
    wheel = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "-w"]
    ended = subprocess.run([*wheel, tmp_path], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode and "Falloff has no wheel" in ended.stderr
    assert "run `make setup` there" in ended.stderr and "Traceback" not in ended.stderr
    build = "import hatchling.build, sys; hatchling.build.build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=ROOT, check=True)
    (made,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(made) as whole:
        assert [name for name in whole.namelist() if name.endswith(".pth")] == ["falloff.pth"]


def test_the_installation_is_found_whatever_the_locale(tmp_path):
    """Python reads a .pth file in the locale's encoding: that of a folder with an accent and a
    blank must be ASCII.
    """
    checkout = tmp_path / "d\u00e9p\u00f4t \u540d"
    site = checkout / "site"
    site.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    shutil.copytree(ROOT / "packaging", checkout / "packaging")
    (checkout / "falloff.py").touch()
    build = "import hatchling.build; hatchling.build.build_editable('site')"
    subprocess.run([sys.executable, "-c", build], cwd=checkout, check=True)
    (made,) = site.glob("*.whl")
    with zipfile.ZipFile(made) as whole:
        whole.extractall(site)
    find = (
        "import sys, site; site.addsitedir(sys.argv[1]); import falloff; "
        "print(ascii(falloff.__file__))"
    )
    for further in ({}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        started = [sys.executable, "-S", "-c", find, site]
        ended = subprocess.run(
            started, cwd="/", env={"LC_ALL": "C", **further}, capture_output=True, text=True
        )
        assert "falloff.py" in ended.stdout and not ended.stderr, ended.stderr


def test_what_a_campaigns_tool_needs_is_installed():
    """Each package that a tool of a shipped campaign names is in the list of the set-up."""
    installed = (ROOT / "packaging/debian-packages.txt").read_text().split()
    texts = (file.read_text() for file in (ROOT / "data" / "campaigns").glob("*.toml"))
    used = {name for text in texts for name in re.findall(r'^runner = "(\w+)"', text, re.M)}
    assert len(used) > 5
    assert {name for tool in used for name in tools.tool_named(tool).packages} <= {*installed}


@pytest.mark.parametrize("lock", ["requirements", "requirements-uv"])
def test_lock_is_hashed_and_names_no_host(lock):
    """Every pinned package has hashes, and no line holds an address; nothing that pyproject.toml
    names is missing.
    """
    text = (ROOT / f"packaging/{lock}.lock").read_text()
    assert not re.search(r"https?://|--index-url|--find-links", text)
    blocks = re.split(r"\n(?=[a-zA-Z])", text.strip())
    assert blocks and all("==" in block and "--hash=sha256:" in block for block in blocks)
    extras = [name for group in PROJECT["optional-dependencies"].values() for name in group]
    wanted = {"uv"} if "uv" in lock else names([*PROJECT["dependencies"], *extras])
    assert wanted <= names(re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.M))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda f: f.stem)
def test_notebooks_can_be_read_and_have_no_outputs(notebook):
    """One cell tagged `parameters`; a notebook is short, hidden cells counted, and starts no
    program and parses no text.
    """
    cells = json.loads(notebook.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    text = "\n".join("".join(cell["source"]) for cell in code)
    lines = [
        line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    assert len(lines) <= 150 and len(cells) <= 30
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, (ast.ClassDef, ast.While))
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 15, node.name
    assert not re.search(r"import .*\b(re|subprocess|json)\b|from (re|subprocess|json) ", text)


def test_the_first_notebook_leads_to_all_others():
    """Whoever starts there finds every experiment, with its question; from 90 on they frame the
    report.
    """
    rows, files = notebooks.contents().splitlines()[2:], [file.name for file in NOTEBOOKS[1:]]
    linked = [re.findall(r"\((\w+\.ipynb)\)", row) for row in rows]
    assert linked == [[name] for name in files if name < "90"]
    assert all("?" in row for row in rows)


def test_no_path_of_one_machine():
    """Nothing in the tree names a folder of the machine on which it was written."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    kinds = (".py", ".toml", ".md", ".yml", ".ipynb", ".sh")
    for file in (ROOT / name for name in listed.split("\n") if name.endswith(kinds)):
        if file.exists() and file.name != "test_project.py":
            assert not re.search(r"(?<![\w.])/(work|root|home)/", file.read_text("utf-8")), file


def imported(nodes) -> set[str]:
    """The full names of all modules that these nodes of a program import."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@cache
def loaded(file: Path) -> frozenset[Path]:
    """The modules with code that importing a module of ours loads, itself among them."""
    return loaded_by(ast.parse(file.read_text("utf-8")).body) | {file}


def loaded_by(nodes) -> frozenset[Path]:
    """The modules with code that these statements load."""
    names = {name.replace(".", "/") for name in imported(nodes)}
    files = {ROOT / f"{name}.py" for name in names} | {
        ROOT / name / "__init__.py" for name in names
    }
    return frozenset().union(*(loaded(file) for file in files if file.exists()))


# What these show needs the explorer, the twin with its prediction, or samples of any kind.
LARGE = {"02_lesson", "55_twin", "80_explore", "86_compare"}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda f: f.stem)
def test_a_notebook_loads_few_modules(notebook):
    """Its first cell waits for them; packages without code of their own do not count."""
    cells = [
        cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    body = ast.parse("\n".join("".join(cell["source"]) for cell in cells)).body
    count = sum(file.name != "__init__.py" for file in loaded_by(body))
    assert count <= (55 if notebook.stem in LARGE else 47)


@cache
def imports() -> dict[str, set[str]]:
    """What each file of the project imports, by its name."""
    return {
        str(file.relative_to(ROOT)): imported(ast.walk(ast.parse(file.read_text("utf-8"))))
        for folder in ("runners", "analysis")
        for file in sorted((ROOT / folder).rglob("*.py"))
    }


def test_a_notebook_owns_what_only_it_says():
    """At most ten functions of analysis word a sentence, make a statement or draw a figure or a
    table for one notebook alone.
    """
    files = [*ROOT.glob("*.py"), *ROOT.glob("analysis/**/*.py")]
    code = Counter(word for file in files for word in re.findall(r"\w+", file.read_text()))
    cells = Counter(word for book in NOTEBOOKS for word in {*re.findall(r"\w+", book.read_text())})
    single = [
        f"{file.stem}.{function.name}"
        for file in (ROOT / "analysis").rglob("*.py")
        for function in ast.parse(file.read_text()).body
        if isinstance(function, ast.FunctionDef)
        and function.returns
        and re.search(r"\b(str|Said|Statement|Figure|Table)\b", ast.unparse(function.returns))
        and code[function.name] == cells[function.name] == 1  # its definition
    ]
    assert len(single) <= 10, single


LIBRARY = {*sys.stdlib_module_names, "runners"}
TOOLS = {f"runners.tools.{name}" for name in tools.names()}
ENGINE = {"runners.engine", "runners.records.plan", "runners.records.journal"}
EXECUTING = r"(runners\.(engine|testbeds(?!\.graph\b))|falloff|subprocess)\b"


@pytest.mark.parametrize(
    ("within", "but", "is_allowed"),
    [
        # What runs on a head node; only what SimGrid's own Python runs imports that.
        ("runners/", "runners/probes/flows.py", lambda name: name.split(".")[0] in LIBRARY),
        # A testbed executes commands, and knows no tool.
        ("runners/testbeds/", "nothing", lambda name: name not in TOOLS | ENGINE),
        # Testbeds are handed to the engine opened.
        (
            "runners/",
            "testbeds/|doctor.py|job.py|session.py|two_way.py",
            lambda name: not name.startswith("runners.testbeds"),
        ),
        # What is kept of a campaign is read without what ran it.
        ("runners/records/", "nothing", lambda name: not re.match(r"runners\.(?!records)\w", name)),
        (
            "runners/recording/",
            "nothing",
            lambda name: not re.match(r"runners\.(engine|testbeds|tools)", name),
        ),
        # One module of the analysis runs campaigns, for whoever asks it to.
        ("analysis/", "analysis/running.py|commands/", lambda name: not re.match(EXECUTING, name)),
        # A model needs numpy and the record that describes it.
        (
            "analysis/laws/models/",
            "nothing",
            lambda name: (
                name.split(".")[0] in {*LIBRARY, "numpy", "scipy", "analysis"}
                and not re.match(r"analysis\.(?!laws(\.models|$))", name)
            ),
        ),
    ],
    ids=["library", "testbeds", "engine", "records", "recording", "analysis", "models"],
)
def test_imports_keep_their_direction(within, but, is_allowed):
    """What each part of the project may import."""
    files = {file: found for file, found in imports().items() if file.startswith(within)}
    strange = {
        (file, name)
        for file, found in files.items()
        if not re.search(but, file)
        for name in found
        if not is_allowed(name)
    }
    assert files and TOOLS and not strange


# The rooms of analysis/ from above, and at last what all of them use.
ROOMS = {
    name: f"analysis/{name}/"
    for name in "commands report experiment explorer watch subjects evidence imports statements "
    "laws dataset statistics descriptions words".split()
}
ROOMS["experiment"] = "analysis: experiment, planning, running"
ROOMS["words"] = "analysis: paths, quoting, wording"


def room_of(name: str) -> str:
    """The room in which a module of analysis/ is, by its full name; empty for any other name."""
    top, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    rooms = [room for room, what in ROOMS.items() if first in re.findall(r"\w+", what)[1:]]
    return rooms[0] if top == "analysis" and rooms else ""


def arrows() -> dict[str, set[str]]:
    """From each room those that its modules import."""
    between = {room: set() for room in ROOMS}
    for file, names in imports().items():
        if room := room_of(file.removesuffix(".py").replace("/", ".")):
            between[room] |= {room_of(name) for name in names} - {"", room}
    return between


def picture() -> str:
    """The rooms and their arrows as a drawing of docs/layout.md, without an arrow that a longer way
    shows, too.
    """
    between, below = arrows(), {}
    for room in reversed(ROOMS):
        below[room] = set().union(*(below[other] | {other} for other in between[room]))
    lines = [f'  {room}["{what}"]' for room, what in ROOMS.items()]
    for room, others in between.items():
        longer = set().union(*(below[other] for other in others))
        lines += [f"  {room} --> {other}" for other in ROOMS if other in others - longer]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def test_imports_run_downwards():
    """No room of analysis/ imports one above it; the picture in docs/layout.md is made from the
    imports.
    """
    order = list(ROOMS)
    upward = {
        (room, other)
        for room, others in arrows().items()
        for other in others
        if order.index(other) < order.index(room)
    }
    assert not upward and all(arrows()[room] for room in order[:-2])
    flat = {file.stem for file in (ROOT / "analysis").glob("[!_]*.py")}
    assert len(flat) <= 6 and all(room_of(f"analysis.{name}") for name in flat), flat
    made = picture()
    assert made in (ROOT / "docs" / "layout.md").read_text(), f"docs/layout.md lacks:\n{made}"


def test_the_page_on_python_runs(tmp_path, monkeypatch):
    """Each line of docs/python.md gives what the page says."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "python.md"
    done = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert done.attempted > 15 and not done.failed


def test_runners_run_on_python_3_9():
    """No syntax and no library call that Python 3.9 lacks; and no module anywhere edits
    sys.path.
    """
    options = ["--target=3.9-", "--violations", "--eval-annotations", "--no-tips"]
    vermin = Path(sys.executable).with_name("vermin")
    done = subprocess.run([vermin, *options, ROOT / "runners"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for file in [*(ROOT / name for name in imports()), *ROOT.glob("*.py")]:
        assert "sys.path" not in file.read_text(encoding="utf-8"), file


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# Files and folders that a reader makes.
MADE = (
    "build/",
    "data/reproduced",
    "data/raw",
    "data/testbeds/mycluster.toml",
    "data/testbeds/mytwin.toml",
    ".venv/bin/falloff",
    "runners/tools/mytool.py",
    "tests/transcripts/mytool",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_what_is_there(page):
    """Links, paths, commands of falloff with their options, targets of make, campaigns that are
    run.
    """
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert not [target for target in links if not (page.parent / target).exists()]
    folders = r"data|docs|analysis|runners|notebooks|tests|build|\.venv"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", text):
        assert (ROOT / name).exists() or name.startswith(MADE), name
    shown = "\n".join(re.findall(r"`([^`]+)`", text) + re.findall(r"^ {4}(.+)$", text, re.M))
    known = commands.falloff.commands
    assert set(re.findall(r"falloff ([a-z]+)\b", shown)) <= set(known)
    for words in re.findall(r"falloff ([a-z]+ [^\n#`]*)", shown):
        name, *rest = words.split(" -- ")[0].split()
        command = known["evidence"].commands[rest[0]] if name == "evidence" else known[name]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(--[a-z-]+)", " ".join(rest))) <= {*options, "--help"}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"make ([a-z-]+)", shown)) <= set(targets)
    campaigns = re.findall(rf"falloff run (?!{nightly.SESSION}\b)([a-z]\w+)", shown)
    if page.name == "experiments.md":
        rows = [re.findall(r"`(\w+)`", line) for line in text.splitlines() if line[:3] == "| `"]
        assert rows and all((ROOT / f"notebooks/{row[0]}.ipynb").exists() for row in rows)
        campaigns += [name for row in rows for name in row[1:]]
    assert not [name for name in campaigns if not (ROOT / f"data/campaigns/{name}.toml").exists()]


def consoles(page):
    """Each command of falloff that a page shows with what it prints, `...` for lines that are left
    out.
    """
    return re.findall(
        r"^ {4}\$ falloff (.+)\n((?:(?: {4}(?!\$|falloff ).+)?\n)+)", page.read_text("utf-8"), re.M
    )


# What takes longer: simulations of 40 seconds, and minutes of measuring, which tests of `reproduce`
# stand for.
SIMULATES, MEASURES = ("twin ", "reproduce ")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param(
            *one, id=one[0].split()[0], marks=[pytest.mark.more] * one[0].startswith(SIMULATES)
        )
        for page in PAGES
        for one in consoles(page)
        if not one[0].startswith(MEASURES)
    ],
)
def test_a_console_prints_what_its_page_shows(command, shown, tmp_path):
    """Each shown line is printed, in that order. `results` are outputs with planted losses."""
    if command.startswith(SIMULATES) and LACKING:
        pytest.skip("; ".join(LACKING))
    own_results.write_hpl(tmp_path / "results", seed=own_results.README)
    places = {name: str(tmp_path / name) for name in ("results", "mine")}
    words = [places.get(word, word) for word in command.split()]
    if command.startswith(SIMULATES):  # it writes a testbed
        home = {**os.environ, "FALLOFF_HOME": str(tmp_path)}
        program = [sys.executable, "-m", "falloff", *words]
        done = subprocess.run(program, cwd=ROOT, env=home, capture_output=True, text=True)
    else:
        done = run(*words)
    text = f"{done.stderr}\n{done.stdout}".replace(f"{tmp_path}/", "").replace(f"{ROOT}/", "")
    printed = iter(text.splitlines())
    for line in shown.splitlines():
        if line and line != "    ...":
            assert any(one.strip() == line.strip() for one in printed), line


def test_readme_can_be_read_and_its_table_holds():
    """In a few minutes; LAMMPS's times are those of the commands above them."""
    readme = PAGES[0].read_text(encoding="utf-8")
    assert len(readme.split()) <= 900 and len(consoles(PAGES[0])) == 2
    table = dict(re.findall(r"^\| (GigE|10GE) \| (.*) \|$", readme, re.M))
    ran, replayed = experiment.stored("program"), experiment.stored("replay_others")
    emulated, times = program.times(ran).time, program.times(replayed)
    for network, name in (("gige", "GigE"), ("10gige", "10GE")):
        at = {"interconnect": network, "nodes": 8}
        mean, replay_s, _ = (cell.split()[0] for cell in table[name].split(" | "))
        assert mean == number(emulated.sel(at).mean().item())
        assert replay_s == number(times.time.sel(program="lammps", **at).item())
    saved, *_ = program.savings(replayed, times.sel(program=["lammps"]))
    assert f"the replay says {100 * saved.estimate:.0f} %" in readme


def test_ci_runs_every_test_on_what_is_supported():
    """`make test` as a whole with an older processor's rounding and on each Python that the package
    names, and no other.
    """
    asked = set(re.findall(r"\btest\S*", (ROOT / ".ci/run").read_text()))
    assert {"test", "test-all", "test-processors", "test-pythons", "test-system"} <= asked
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [
        name.removeprefix("Programming Language :: Python :: ") for name in about["classifiers"][1:]
    ]
    assert about["requires-python"] == f">={named[0]}"
    after = f"3.{int(named[-1].split('.')[1]) + 1}"
    assert f"python>={named[0]},<{after}\n" in (ROOT / "environment.yml").read_text()
    words = ["make", "--dry-run", "test-processors", "test-pythons"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout
    suites = (
        r'^(\S+) -m pytest [^\n/]*"not alone and not long and not more"$'
        r"|^left out: Python \S+ is not here$"
    )
    assert len(re.findall(suites, shown, re.M)) == len(named)


def test_the_paper_has_what_its_journal_asks_for():
    """JOSS: the authors' affiliations, these sections, 750 to 1,750 words, and a source for each
    citation.
    """
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    _, front, body = paper.split("---\n", 2)
    about = yaml.safe_load(front)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= about.keys()
    affiliations = {one["index"] for one in about["affiliations"]}
    assert {one["affiliation"] for one in about["authors"]} == affiliations
    wanted = (
        "Summary, Statement of need, State of the field, Software design, "
        "Research impact statement, References"
    )
    assert set(wanted.split(", ")) <= set(re.findall(r"^# (.+)$", body, re.M))
    assert 750 <= len(body.split()) <= 1750
    sources = (ROOT / "paper" / about["bibliography"]).read_text(encoding="utf-8")
    cited = set(re.findall(r"@([a-z0-9]+)", body))
    assert cited and not [key for key in cited if f"{{{key}," not in sources]
