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

from runners.testbeds import graph, lease, netns, settings
from runners.testbeds.settings import Shaper

ROOT = Path(__file__).resolve().parent.parent.parent
# Not emulated.py's: what a killed test left is removed by the next one in another way.
STATES = Path("/run/falloff-cluster")
EMULATED = tomllib.loads((ROOT / "data/testbeds/emulated.toml").read_text())
RATES_BIT_S = (1e9, 10e9)  # of two networks: there has to be a wrong one

_RAILS = range(1, len(RATES_BIT_S) + 1)
_SWITCH = "switch"
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

    def run(
        self, argv: Sequence[str], limit_s: float = 60, **options: object
    ) -> "subprocess.CompletedProcess[str]":
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
        ports = [_port(number, rail) for rail in _RAILS]
        switch = node.space.with_name(_SWITCH)
        netns.run([netns.batch("ip", switch, [f"link set {port} down" for port in ports])])
        try:
            yield
        finally:
            netns.run([netns.batch("ip", switch, [f"link set {port} up" for port in ports])])


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
            known = [f"{graph.address(number)} {graph.name(number)}\n" for number in numbers]
            (shared / "hosts").write_text("127.0.0.1 localhost\n" + "".join(known))
            nodes = [_start(state / graph.name(number), shared, inits) for number in numbers]
            yield Nodes(shared, nodes[-1], nodes[:-1])
        finally:
            for init in inits:
                init.kill()
            for init in inits:
                init.communicate()


def _wire(state: Path, numbers: range) -> None:
    """Make the nodes' namespaces and both networks, each a switch, with addresses and routes on each."""
    switch, spaces = state / _SWITCH, {number: state / graph.name(number) for number in numbers}
    netns.create(switch, *spaces.values())
    lines = [f"link add bridge-{rail} type bridge" for rail in _RAILS] + [
        f"link set bridge-{rail} up" for rail in _RAILS
    ]
    for number, space in spaces.items():
        for rail in _RAILS:
            own = _port(number, rail)
            lines.append(f"link add {own} type veth peer name eth{rail - 1} netns {space}/net")
            lines.append(f"link set {own} master bridge-{rail} up")
    netns.run([netns.batch("ip", switch, lines)])
    for space in spaces.values():
        settings.write(space, settings.tcp_sysctls(EMULATED["tcp"]))
    netns.run([netns.batch("ip", space, _attachments(number)) for number, space in spaces.items()])
    shapers = {
        rail: Shaper(rate, 1500, super_packets=True).qdisc
        for rail, rate in zip(_RAILS, RATES_BIT_S)
    }
    ports = [
        f"qdisc replace dev {_port(n, rail)} root {shapers[rail]}"
        for n in numbers
        for rail in _RAILS
    ]
    ends = [f"qdisc replace dev eth{rail - 1} root {shapers[rail]}" for rail in _RAILS]
    netns.run(
        [
            netns.batch("tc", switch, ports),
            *(netns.batch("tc", space, ends) for space in spaces.values()),
        ]
    )


def _port(node: int, rail: int) -> str:
    """The switches' interface opposite a node's."""
    return f"{graph.name(node)}-{rail}"


def _attachments(node: int) -> list[str]:
    """What gives a node an address and a route on each network."""
    lines = ["link set lo up"]
    for rail in _RAILS:
        device, own = f"eth{rail - 1}", graph.address(node, rail)
        lines += [f"address add {own}/24 dev {device} noprefixroute", f"link set {device} up"]
        lines.append(f"route add {graph.subnet(rail)} dev {device} src {own}")
    return lines


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


def _demolish(state: Path) -> None:
    netns.release(state)
    shutil.rmtree(state)
