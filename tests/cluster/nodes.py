"""Emulated nodes that real daemons take for machines: a network, a hostname, processes and mounts of their own."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runners.testbeds import lease, links, netns

ROOT = Path(__file__).resolve().parent.parent.parent
# Not emulated.py's: what a killed test left is removed by the next one in another way.
STATES = Path("/run/falloff-cluster")
EMULATED = tomllib.loads((ROOT / "data/testbeds/emulated.toml").read_text())
RATES_BIT_S = (1e9, 10e9)  # of two networks: there has to be a wrong one

_RAILS = range(1, len(RATES_BIT_S) + 1)
_ITS_OWN = re.compile(
    r"sleep infinity|sshd: .*\[listener\].*|slurmd -N .*|slurmctld|: slurmscriptd|munged .*|ps -e .*"
)
_INIT = Path(__file__).with_name("init.py")


@dataclass(frozen=True)
class Node:
    """One node while it is up; `init` is the process on this machine with which all of the node's end."""

    name: str
    space: Path
    init: "subprocess.Popen[str]"

    @property
    def inside(self) -> list[str]:
        """The words before a command that is to run on the node."""
        pid = self.init.pid
        return [
            "nsenter", f"--target={pid}", "--net", "--uts", "--mount", f"--pid=/proc/{pid}/ns/pid_for_children", "--",
        ]  # fmt: skip

    def start(self, argv: Sequence[str], **options: object) -> "subprocess.Popen[str]":
        """Start a command on the node with subprocess' options; whatever it starts ends with the node."""
        return subprocess.Popen([*self.inside, *argv], text=True, **options)

    def run(self, argv: Sequence[str], limit_s: float = 60, **options: object) -> "subprocess.CompletedProcess[str]":
        """Run a command on the node to its end; its output is kept."""
        argv = [*self.inside, *argv]
        return subprocess.run(argv, text=True, capture_output=True, timeout=limit_s, **options)

    def commands(self) -> list[str]:
        """The command lines of all processes on the node beside its own: the first one, and daemons that wait."""
        lines = self.run(["ps", "-e", "-ww", "-o", "args="]).stdout.splitlines()
        return [line for line in lines if not _ITS_OWN.fullmatch(line)]

    def runs(self, program: str) -> bool:
        """Whether a program of that name runs on the node; that others have it among their words does not count."""
        return any(Path(line.split()[0]).name == program for line in self.commands())


@dataclass(frozen=True)
class Nodes:
    """Nodes that are up: `head`, where users log in, and `compute`; `shared` is a folder that all of them see."""

    shared: Path
    head: Node
    compute: Sequence[Node]

    @property
    def all(self) -> list[Node]:
        """Compute nodes and head."""
        return [*self.compute, self.head]

    def commands(self) -> list[str]:
        """What runs on all of them beside their own, each with its node before it."""
        return [f"{node.name}: {line}" for node in self.all for line in node.commands()]

    @contextmanager
    def unplugged(self, node: Node) -> Iterator[None]:
        """The node without its cables meanwhile: its processes run on, and nobody reaches it."""
        number = self.all.index(node) + 1
        ports = [links.port(number, rail) for rail in _RAILS]
        switch = node.space.with_name(links.SWITCH)
        netns.run([links.batch("ip", switch, [f"link set {port} down" for port in ports])])
        try:
            yield
        finally:
            netns.run([links.batch("ip", switch, [f"link set {port} up" for port in ports])])


@contextmanager
def up(compute: int) -> Iterator[Nodes]:
    """So many compute nodes n1, n2 ... and a head after them, joined by Gigabit and 10 Gigabit Ethernet.

    All processes on them, their mounts and namespaces are gone on leaving, whatever happens.
    """
    STATES.mkdir(exist_ok=True)
    inits: list[subprocess.Popen[str]] = []
    with lease.sigterm_exits(), lease.held(_demolish, STATES) as state:
        try:
            numbers = range(1, compute + 2)
            _wire(state, numbers)
            shared = state / "shared"
            shared.mkdir()
            known = [f"{links.address(number)} {links.name(number)}\n" for number in numbers]
            (shared / "hosts").write_text("127.0.0.1 localhost\n" + "".join(known))
            nodes = [_start(state / links.name(number), shared, inits) for number in numbers]
            yield Nodes(shared, nodes[-1], nodes[:-1])
        finally:
            for init in inits:
                init.kill()
            for init in inits:
                init.communicate()


def _wire(state: Path, numbers: range) -> None:
    """Make the nodes' namespaces and both networks, with addresses and routes on each."""
    links.build(state, len(numbers), len(_RAILS))
    # They are configured from the first up to one, so the last has its turn before the others.
    for rail, rate in reversed(list(zip(_RAILS, RATES_BIT_S))):
        links.configure(state, len(numbers), links.Link(rate, 1500, EMULATED["tcp"], EMULATED["offloads"]), rail)
    netns.run([links.batch("ip", state / links.name(number), _routes(number)) for number in numbers])


def _routes(node: int) -> list[str]:
    """What gives a node an address and a route on each network, beyond the first address, which it has."""
    ways = [(links.subnet(rail), links.interface(rail), links.address(node, rail)) for rail in _RAILS]
    return [
        *(links.attachment(node, rail, rail) for rail in _RAILS[1:]),
        *(f"route add {subnet} dev {interface} src {own}" for subnet, interface, own in ways),
    ]


def _start(space: Path, shared: Path, inits: "list[subprocess.Popen[str]]") -> Node:
    kept = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
    mortal = ["setpriv", "--pdeathsig", "KILL"]  # a test that is killed takes its nodes along
    fresh = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    init = [sys.executable, "-I", str(_INIT), str(shared), *map(str, kept)]
    inits.append(subprocess.Popen([*mortal, *netns.inside(space), *fresh, *init], stdout=subprocess.PIPE, text=True))
    if inits[-1].stdout.readline() != "ready\n":
        raise RuntimeError(f"{space.name} did not come up")
    return Node(space.name, space, inits[-1])


def _demolish(state: Path) -> None:
    netns.release(state)
    shutil.rmtree(state)
