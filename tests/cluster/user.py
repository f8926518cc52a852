"""Somebody who uses the cluster: a clone of the project on the shared file system, its command line
on the head.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from nodes import ROOT, Node, Nodes

from analysis.dataset import derive, store
from runners import executables
from runners.records.journal import Folder
from runners.records.record import FalloffError, Outcome, judge
from runners.tools import tool_named

_PAUSE_S = 0.2  # to ask is to start processes, which should not slow down what is waited for


def until(holds: Callable[[], object], what: str, limit_s: float = 30) -> None:
    """Return once `holds()` is true; raises AssertionError that says `what` when that takes longer
    than `limit_s`.
    """
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {limit_s:g} s"
        time.sleep(_PAUSE_S)


def until_none(running: Callable[[], list[str]], limit_s: float = 30) -> None:
    """Return once nothing is `running()`; raises AssertionError that lists what still does after
    `limit_s`.
    """
    deadline = time.monotonic() + limit_s
    while left := running():
        assert time.monotonic() < deadline, f"still running after {limit_s:g} s: {left}"
        time.sleep(_PAUSE_S)


@dataclass(frozen=True)
class Session:
    """A command that runs on `node`; `leader` is its process' id there, and its process group's."""

    node: Node
    process: "subprocess.Popen[str]"
    leader: str

    def signal(self, name: str) -> None:
        """Send a signal (INT, KILL ...) to all processes of the group, as a terminal does."""
        done = self.node.run(["kill", f"-{name}", "--", f"-{self.leader}"])
        assert done.returncode == 0, done.stderr

    def end(self, limit_s: float = 60) -> "tuple[int, str]":
        """Wait for its end: the exit code and all that it said."""
        said, _ = self.process.communicate(timeout=limit_s)
        return self.process.returncode, said


def started(nodes: Nodes, node: Node, argv: Sequence[str], **options: object) -> Session:
    """Start a command with subprocess' options; output and complaints come together."""
    with tempfile.TemporaryDirectory(dir=nodes.shared) as folder:
        file = Path(folder) / "leader"
        # setsid would go into the background where it leads a group itself, hence --wait.
        alone = [
            "setsid",
            "--wait",
            "sh",
            "-c",
            'echo $$ >"$0.part"; mv "$0.part" "$0"; exec "$@"',
            str(file),
        ]
        pipe = subprocess.PIPE
        process = node.start(
            [*alone, *argv], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, **options
        )
        until(file.exists, "the command starts")
        return Session(node, process, file.read_text().strip())


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
        return outcomes(self.folder(testbed))

    def start(self, *words: str) -> Session:
        """Start a command of Falloff's."""
        return started(self.nodes, self.nodes.head, self._argv(words), env=self.environment)

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
    """A clone of what is in the repository, which has the small campaign and finds the tools that
    are built here.

    The test is skipped where a tool is missing.
    """
    for tool in _TOOLS:
        try:
            executables.find(tool, {})
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


# What is kept of a campaign.
def outcomes(folder: Folder) -> dict[str, tuple[int, Outcome]]:
    """Of every trial by id how many nodes it takes, and what became of it."""
    found = {}
    for transcript in folder.transcripts():
        runner = tool_named(transcript.trial.runner)
        needed = max(command.nodes for command in runner.commands(transcript.trial.point))
        found[transcript.trial.id] = (needed, judge(transcript, runner.parse))
    return found


def statuses(found: Iterable[tuple[int, Outcome]]) -> set[str]:
    """The different statuses of some outcomes."""
    return {outcome.status for _, outcome in found}


def check_ran_once(folder: Folder) -> None:
    """Every trial is there, and none that had been finished ran again."""
    notes = [
        note["id"]
        for note in folder.notes()
        if note["event"] == "trial" and note["status"] != "unavailable"
    ]
    assert len(notes) == len(set(notes)), "a finished trial ran again"
    assert folder.finished() == {trial.id for trial in folder.plan().trials()}


def check_measured(folder: Folder) -> None:
    """Every trial ran once and is valid evidence of the kind `measured`, and HPL's bytes are on its
    network.
    """
    check_ran_once(folder)
    dataset = store.assemble(folder.path)
    assert (dataset.status == "ok").all(), dataset.reason.values
    assert set(dataset.evidence.values.ravel()) == {"measured"}
    two = dataset.isel(trial=(dataset.role == "point").values & (dataset.nodes == 2).values)
    assert (
        two.sizes["trial"]
        and (two.bytes_sent.sum("node") >= derive.broadcast_bytes(two.N, two.Q)).all()
    )


# The shipped examples of clusters, edited line by line as a reader would, until they describe the
# emulated nodes.
_EXAMPLES = ROOT / "data/testbeds"

# What the example says, and what holds here. The first network is GigE, the second 10GE.
_SSH = {
    'hosts = ["node01", "node02", "node03", "node04"]': 'hosts = ["n1", "n2", "n3", "n4"]',
    "threads = 20": "threads = 1",
    "memory_bytes = 64e9": "memory_bytes = 2e7",  # HPL then takes a second or two
    'subnet = "10.1.0.0/24"': 'subnet = "10.81.0.0/24"',
    'subnet = "10.2.0.0/24"\n': 'subnet = "10.81.1.0/24"\n',
    "timeout_s = 3600": "timeout_s = 20",
}
_SLURM = {
    "nodes = 8": "nodes = 4",
    'modules = ["openmpi/4.1.6"]': "modules = []",
    "ranks_per_node = 2": "ranks_per_node = 1",
    "threads = 16": "threads = 1",
    '"--map-by", "ppr:1:numa:PE=16", "--bind-to", "core"': '"--bind-to", "none"',
    "memory_bytes = 256e9": "memory_bytes = 2e7",
    'partition = "compute"': 'partition = "all"',
    "[networks.10gige]": "[networks.gige]",
    'interface = "eth0"': 'subnet = "10.81.0.0/24"',
    "rate_bit_s = 10e9": "rate_bit_s = 1e9",
    "[networks.100gige]": "[networks.10gige]",
    'subnet = "10.20.0.0/16"': 'subnet = "10.81.1.0/24"',
    "rate_bit_s = 100e9": "rate_bit_s = 10e9",
    "mtu = 9000": "mtu = 1500",
    'rdma = "mlx5_0:1"': "",
    'mpi = ["--mca", "pml", "ucx"]': "",
    'environment = { UCX_TLS = "rc,self,sm", UCX_NET_DEVICES = "mlx5_0:1" }': "",
    "timeout_s = 3600": "timeout_s = 20",
}


def by_ssh(name: str, config: Path, edits: Mapping[str, str] = {}) -> str:
    """The nodes as a testbed of that name without a scheduler; `edits` come on top."""
    own = {
        'name = "example_ssh"': f'name = "{name}"',
        '# [ssh]\n# config = "~/.ssh/config"': f'[ssh]\nconfig = "{config}"',
    }
    return _edited("example_ssh", {**_SSH, **own, **edits})


def by_slurm(name: str, time_limit_s: int) -> str:
    """The nodes as a testbed of that name with Slurm."""
    own = {
        'name = "example_slurm"': f'name = "{name}"',
        "time_limit_s = 14400": f"time_limit_s = {time_limit_s}",
    }
    return _edited("example_slurm", {**_SLURM, **own})


def _edited(example: str, edits: Mapping[str, str]) -> str:
    text = (_EXAMPLES / f"{example}.toml").read_text()
    for old, new in edits.items():
        assert text.count(old) == 1, f"{example}.toml has {old!r} {text.count(old)} times"
        text = text.replace(old, new)
    return text
