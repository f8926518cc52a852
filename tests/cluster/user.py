"""Somebody who uses the cluster: a clone of the project on the shared file system, its command line on the head."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import kept
import pytest
import session
from nodes import ROOT, Nodes

from runners import tools
from runners.journal import Folder
from runners.record import FalloffError, Outcome

CAMPAIGN = "hpl_small"
_TOOLS = ("xhpl", "dgemm", "iperf3", "mpirun")
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class User:
    """Who works in `clone` on the head, with these settings in the environment."""

    nodes: Nodes
    clone: Path
    environment: Mapping[str, str]

    def falloff(self, *words: str, limit_s: float = 300) -> "subprocess.CompletedProcess[str]":
        """Run a command of Falloff's to its end."""
        return self.nodes.head.run(self._argv(words), limit_s, env=self.environment)

    def submit(self, *words: str) -> str:
        """Run a command that submits a job, and return the job's number."""
        done = self.falloff(*words)
        assert done.returncode == 0, done.stderr
        return re.search(r"[Ss]ubmitted job (\d+)", done.stdout)[1]

    def output(self, testbed: str, job: str, campaign: str = CAMPAIGN) -> str:
        """What a job of a campaign on a testbed printed."""
        return (self.folder(testbed, campaign).path / f"job-{job}.out").read_text()

    def run_block(self, testbed: str) -> "dict[str, tuple[int, Outcome]]":
        """Run one block of the small campaign; what became of each trial."""
        done = self.falloff("run", CAMPAIGN, "--testbed", testbed, "--repeats", "1")
        assert done.returncode == 0, done.stderr
        return kept.outcomes(self.folder(testbed))

    def start(self, *words: str) -> session.Session:
        """Start a command of Falloff's."""
        return session.start(self.nodes, self.nodes.head, self._argv(words), env=self.environment)

    def describe(self, name: str, text: str) -> None:
        """Write the description of a testbed."""
        (self.clone / f"data/testbeds/{name}.toml").write_text(text)

    def folder(self, testbed: str, campaign: str = CAMPAIGN) -> Folder:
        """The folder of a campaign on a testbed, of which there is one version."""
        (found,) = (self.clone / "data/raw").glob(f"{campaign}-{testbed}-????????")
        return Folder(found)

    def kept(self, testbed: str, campaign: str = CAMPAIGN) -> "dict[str, int]":
        """When each kept trial of a campaign was written [ns]; none while it has no folder."""
        files = (self.clone / "data/raw").glob(f"{campaign}-{testbed}-????????/transcripts/*.json")
        return {file.stem: file.stat().st_mtime_ns for file in files}

    def _argv(self, words: "tuple[str, ...]") -> "list[str]":
        return [sys.executable, str(self.clone / "falloff.py"), *words]


def submission(testbed: str, blocks: int, campaign: str = CAMPAIGN) -> "tuple[str, ...]":
    """The command that submits so many blocks of a campaign."""
    return ("run", campaign, "--testbed", testbed, "--repeats", str(blocks), "--submit")


def clone(nodes: Nodes, environment: Mapping[str, str]) -> User:
    """A clone of what is in the repository, which has the small campaign and finds the tools that are built here.

    The test is skipped where a tool is missing.
    """
    for tool in _TOOLS:
        try:
            tools.find(tool, {})
        except FalloffError as error:
            pytest.skip(str(error))
    folder = nodes.shared / "falloff"
    without = shutil.ignore_patterns("raw", "datasets", "reference", "__pycache__")
    for name in ("analysis", "runners", "data"):
        shutil.copytree(ROOT / name, folder / name, ignore=without)
    for module in ROOT.glob("*.py"):
        shutil.copy(module, folder)
    (folder / "build").symlink_to(ROOT / "build")
    shutil.copy(_HERE / f"{CAMPAIGN}.toml", folder / "data/campaigns")
    return User(nodes, folder, environment)
