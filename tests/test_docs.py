"""README and docs/: every command and path that they name exists."""

import re

import pytest
import yaml
from command_line import run

import falloff
from analysis.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_WORDS = 900  # of README
# Files and folders that a reader makes.
MADE = (
    "build/",
    "data/reproduced",
    "data/raw",
    "data/testbeds/mycluster.toml",
    "data/testbeds/mytwin.toml",
    ".venv/bin/falloff",
    "runners/mytool.py",
)


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request):
    """A page and its text."""
    return request.param, request.param.read_text(encoding="utf-8")


def test_links_lead_somewhere(page):
    """To files of the project."""
    file, text = page
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert not [target for target in targets if not (file.parent / target).exists()]


def test_paths_exist(page):
    """What stands as a path is there, or is made by the reader."""
    named = re.findall(
        r"`((?:data|docs|analysis|runners|notebooks|tests|build|\.venv)/[\w./-]*)`", page[1]
    )
    unknown = [name for name in named if not (ROOT / name).exists()]
    assert not [
        name for name in unknown if not name.startswith((*MADE, "tests/transcripts/mytool"))
    ]


def test_commands_exist(page):
    """Commands of falloff, targets of make, campaigns that are run."""
    shown = "\n".join(code(page[1]))
    commands = falloff.parser()._subparsers._group_actions[0].choices
    assert set(re.findall(r"falloff ([a-z]+)\b", shown)) <= set(commands)
    checks = commands["evidence"]._subparsers._group_actions[0].choices
    assert set(re.findall(r"falloff evidence ([a-z]+)\b", shown)) <= set(checks)
    for words in re.findall(r"falloff ([a-z]+ [^\n#]*)", shown):
        name, *rest = words.split(" -- ")[0].split()
        grammar = checks.get(rest[0]) if name == "evidence" else commands[name]
        options = re.findall(r"(--[a-z-]+)", " ".join(rest))
        assert not [option for option in options if option not in grammar._option_string_actions]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"make ([a-z-]+)", shown)) <= set(targets)
    campaigns = re.findall(r"falloff run ([a-z]\w+)", shown)
    assert not [name for name in campaigns if not (ROOT / f"data/campaigns/{name}.toml").exists()]


def test_experiments_are_listed_as_they_are():
    """Each named notebook and campaign is there."""
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`(\w+)`", line) for line in text.splitlines() if line.startswith("| `")]
    assert rows
    for notebook, *campaigns in rows:
        assert (ROOT / f"notebooks/{notebook}.ipynb").exists()
        assert all((ROOT / f"data/campaigns/{name}.toml").exists() for name in campaigns)


def test_readmes_examples_print_what_it_shows():
    """Each shown line is printed, in that order; `...` stands for lines that are left out."""
    examples = re.findall(
        r"^ {4}\$ falloff (.+)\n((?: {4}(?!\$).+\n)+)", PAGES[0].read_text(), re.M
    )
    assert len(examples) == 2
    for command, shown in examples:
        printed = iter(run(*command.split()).stdout.splitlines())
        for line in shown.splitlines():
            assert line == "    ..." or any(one.strip() == line.strip() for one in printed), line


def test_readme_can_be_read():
    """In a few minutes."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


def code(text):
    """What stands in backticks or is indented."""
    return re.findall(r"`([^`]+)`", text) + re.findall(r"^ {4}(.+)$", text, re.M)


def test_the_paper_has_what_its_journal_asks_for():
    """JOSS: the authors' affiliations, these sections, 750 to 1,750 words, and a source for each citation."""
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    _, front, body = paper.split("---\n", 2)
    asked = {"title", "tags", "authors", "affiliations", "date", "bibliography"}
    about = yaml.safe_load(front)
    assert asked <= about.keys()
    assert {one["affiliation"] for one in about["authors"]} == {
        one["index"] for one in about["affiliations"]
    }
    sections = re.findall(r"^# (.+)$", body, re.M)
    for section in (
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "References",
    ):
        assert section in sections
    assert 750 <= len(body.split()) <= 1750
    sources = (ROOT / "paper" / about["bibliography"]).read_text(encoding="utf-8")
    cited = set(re.findall(r"@([a-z0-9]+)", body))
    assert cited and not [key for key in cited if f"{{{key}," not in sources]
