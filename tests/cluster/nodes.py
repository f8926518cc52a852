"""Emulated nodes that real daemons take for machines: a network, a hostname, processes and mounts
of their own.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runners.testbeds import graph, lease, netns, network

ROOT = Path(__file__).resolve().parent.parent.parent
# Not emulated.py's: what a killed test left is removed by the next one in another way.
STATES = Path("/run/falloff-cluster")
EMULATED = tomllib.loads((ROOT / "data/testbeds/emulated.toml").read_text())
TWO_SWITCHES = {
    "gige": 1e9,
    "10gige": 1e10,
}  # rates [bit/s] of two networks: there has to be a wrong one
_ITS_OWN = re.compile(
    r"sleep infinity|sshd: .*\[listener\].*|slurmd -N .*|slurmctld|: slurmscriptd|munged .*|ps "
    r"-e .*"
)
_BURST_S = 1e-3  # what leaves a slow link at once after a pause, which is free
_INIT = Path(__file__).with_name("init.py")


@dataclass(frozen=True)
class Node:
    """One node while it is up; `init` is the process on this machine with which all of the node's
    end.
    """

    name: str
    space: Path
    init: "subprocess.Popen[str]"

    @property
    def inside(self) -> list[str]:
        """The words before a command that is to run on the node."""
        pid = self.init.pid
        return [
            "nsenter",
            f"--target={pid}",
            "--net",
            "--uts",
            "--mount",
            f"--pid=/proc/{pid}/ns/pid_for_children",
            "--",
        ]

    def start(self, argv: Sequence[str], **options: object) -> "subprocess.Popen[str]":
        """Start a command on the node with subprocess' options; whatever it starts ends with the
        node.
        """
        return subprocess.Popen([*self.inside, *argv], text=True, **options)

    def run(
        self, argv: Sequence[str], limit_s: float = 60, **options: object
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on the node to its end; its output is kept."""
        argv = [*self.inside, *argv]
        return subprocess.run(argv, text=True, capture_output=True, timeout=limit_s, **options)

    def commands(self) -> list[str]:
        """The command lines of all processes on the node beside its own: the first one, and daemons
        that wait.
        """
        lines = self.run(["ps", "-e", "-ww", "-o", "args="]).stdout.splitlines()
        return [line for line in lines if not _ITS_OWN.fullmatch(line)]

    def runs(self, program: str) -> bool:
        """Whether a program of that name runs on the node; that others have it among their words
        does not count.
        """
        return any(Path(line.split()[0]).name == program for line in self.commands())


@dataclass(frozen=True)
class Nodes:
    """Nodes that are up: `head`, where users log in, and `compute`; `shared` is a folder that all
    of them see.
    """

    net: network.Network
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
        number = self.all.index(node)

        def set_cables(way: str) -> None:
            for switch in TWO_SWITCHES:
                port, space = self.net.devices(switch)[number], self.net.space(switch)
                netns.run([netns.batch("ip", space, [f"link set {port} {way}"])])

        set_cables("down")
        try:
            yield
        finally:
            set_cables("up")


@contextmanager
def up(compute: int, slowness: float = 1) -> Iterator[Nodes]:
    """So many compute nodes n1, n2 ... and a head after them, joined by Gigabit and 10 Gigabit
    Ethernet, or by networks that are so many times slower and let little through at once.

    All processes on them, their mounts and namespaces are gone on leaving, whatever happens.
    """
    STATES.mkdir(exist_ok=True)
    inits: list[subprocess.Popen[str]] = []
    with lease.signals_exit(), lease.held(network.demolish, STATES) as state:
        try:
            net = _wired(state, compute + 1, slowness)
            shared = state / "shared"
            shared.mkdir()
            known = [f"{graph.address(node)} {graph.name(node)}\n" for node in net.graph.nodes]
            (shared / "hosts").write_text("127.0.0.1 localhost\n" + "".join(known))
            spaces = map(net.space, map(graph.name, net.graph.nodes))
            nodes = [_start(space, shared, inits) for space in spaces]
            yield Nodes(net, shared, nodes[-1], nodes[:-1])
        finally:
            for init in inits:
                init.kill()
            for init in inits:
                init.communicate()


def _wired(state: Path, nodes: int, slowness: float) -> network.Network:
    """So many nodes on two switches, with addresses and routes on each."""
    numbers = list(range(1, nodes + 1))
    table = {
        "mtu": 1500,
        "switches": dict.fromkeys(TWO_SWITCHES, 1500),
        "links": [
            {"from": numbers, "to": switch, "rate_bit_s": rate / slowness}
            for switch, rate in TWO_SWITCHES.items()
        ],
    }
    net = network.build(state, table, lambda tool: tool)
    burst_s = None if slowness == 1 else _BURST_S
    way = graph.Way(graph.EACH_LINK)
    net.configure(EMULATED["tcp"], EMULATED["offloads"], 1500, way, burst_s=burst_s)
    return net


def _start(space: Path, shared: Path, inits: "list[subprocess.Popen[str]]") -> Node:
    kept = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
    mortal = ["setpriv", "--pdeathsig", "KILL"]  # a test that is killed takes its nodes along
    fresh = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    init = [sys.executable, "-I", str(_INIT), str(shared), *map(str, kept)]
    inits.append(
        subprocess.Popen(
            [*mortal, *netns.inside(space), *fresh, *init], stdout=subprocess.PIPE, text=True
        )
    )
    if inits[-1].stdout.readline() != "ready\n":
        raise RuntimeError(f"{space.name} did not come up")
    return Node(space.name, space, inits[-1])
