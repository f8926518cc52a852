"""Testbeds, as the files of data/testbeds describe them: clusters, emulated and simulated ones."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from analysis import paths
from analysis.descriptions import switch_designs
from analysis.descriptions.testbed_tables import (
    Arguments,
    Buffers,
    ClusterNetwork,
    Cpu,
    FilePath,
    Host,
    NetworkTable,
    Node,
    Offloads,
    Parameter,
    Peak,
    Program,
    Rates,
    Scale,
    ShaperTable,
    SimulatedNetwork,
    Slow,
    Slurm,
    Ssh,
    Switch,
    Tcp,
)
from analysis.descriptions.toml_tables import (
    Blocks,
    Count,
    Name,
    Nodes,
    Positive,
    Ruled,
    Settings,
    Share,
    TomlTable,
    Word,
    described,
    extended,
    fault,
    faults,
    must_be,
    parse,
    refuse,
    text,
)
from runners.records.description_rules import one_of
from runners.records.record import faulty, nearest, unknown_key


class Testbed(TomlTable):
    """What every kind of testbed has."""

    __test__ = False  # pytest would collect it

    extends: Name | None = None
    """the testbed of which this one has every table and value that it does not state itself"""
    name: Host
    kind: str
    nodes: Nodes | None = None
    blocks: Blocks | None = None
    """the most blocks: a simulation repeats itself exactly"""
    interconnects: list[Name] | None = None
    """the interconnects that it has; default: those of the campaign"""
    runners: list[Name] | None = None
    """the tools that it can run; default: all"""
    settings: Settings = {}
    """for every point, instead of the campaign's"""
    levels: dict[str, dict[str, Settings]] = {}
    """for every campaign, instead of its own"""
    tools: dict[Word, FilePath] = {}
    """paths of tools; by default PATH and build/tools/bin are searched"""
    networks: dict[Word, Any] = {}


class EmulatedTestbed(Testbed):
    """A cluster of network namespaces on this machine."""

    kind: Literal["emulated"]
    nodes: Nodes
    networks: dict[Word, NetworkTable] = {}
    rails: Count = 1
    """links of each node, each to a switch of its own"""
    tcp: Tcp
    offloads: Offloads | None = None
    node: Node = Node()
    shaper: ShaperTable = ShaperTable()
    switch: Switch = Switch()
    scale: Scale | None = None
    buffers: Buffers | None = None
    mpi: dict[Word, Parameter] = {}
    """parameters of Open MPI"""
    slow: Slow = Slow()
    cpu: Cpu | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse([fault(*misfit) for misfit in self._misfits()])
        return self

    def _misfits(self) -> Iterator[tuple[tuple[str, ...], Any, str]]:
        """The place, value and words of each part that does not fit the others."""
        node, numbers = self.node, set(map(str, range(1, self.nodes + 1)))
        for part in ("links", "nodes"):
            for number, share in getattr(self.slow, part).items():
                if number not in numbers:
                    words = f"must be of a node from 1 to {self.nodes}"
                    yield ("slow", part, number), share, words
        if self.slow.nodes and node.flop_s is None and not node.stretched:
            words = "needs flop_s or stretched of [node]: only paced nodes can be slower"
            yield ("slow", "nodes"), None, words
        for key in ("congestion_control", "rmem", "wmem"):
            if getattr(self.tcp, key) is None:
                yield ("tcp", key), None, "is missing"
        for key in ("flop_s", "dilation") if self.scale else ():
            if getattr(node, key) is None:
                yield ("node", key), None, "is missing: [scale] needs it"
        for key in ("dilation", "machine_message_s") if node.stretched else ():
            if getattr(node, key) is None:
                yield ("node", key), None, "is missing: stretched needs it"
        for name, network in self.networks.items():
            if network.latency_s is not None and not node.stretched:
                words = "needs stretched nodes: others keep this machine's own latency"
                yield ("networks", name, "latency_s"), network.latency_s, words


class SimulatedTestbed(Testbed):
    """A cluster that SimGrid models."""

    kind: Literal["simulated"]
    nodes: Nodes
    networks: dict[Word, NetworkTable] = {}
    designs: Name | None = None
    """a file in data/designs, whose networks it has and no others"""
    ranks_per_node: Nodes = 1
    """HPL's, in every campaign whose matrices `matrix_bytes` sizes"""
    matrix_bytes: Positive | None = None
    """that HPL's matrix takes on each node; without it a campaign's own orders and grids hold"""
    rpeak: Peak | None = None
    rates: Rates
    network: dict[Word, SimulatedNetwork]


class Cluster(Testbed):
    """The reader's own cluster."""

    kind: Literal["cluster"]
    launcher: Annotated[str, Ruled(one_of(["ssh", "slurm"]))]
    hosts: Annotated[list[Host], must_be("a list of host names")] = []
    """as ssh and mpirun know them, node 1 first"""
    python: Program = "python3"
    modules: Annotated[list[Program], must_be("a list of names of environment modules")] = []
    scratch: Annotated[
        str, text(r"/[A-Za-z0-9_/.-]*", "the absolute path of a folder for temporary files")
    ] = "/tmp"
    ranks_per_node: Nodes = 1
    threads: Count = 1
    """of each process"""
    binding: Arguments = []
    memory_bytes: Positive | None = None
    """of each node"""
    matrix_share: Share | None = None
    """the share of the memory that HPL's matrix takes"""
    ssh: Ssh | None = None
    slurm: Slurm | None = None
    rpeak: Peak = Peak()
    tcp: Tcp | None = None
    networks: Annotated[dict[Word, ClusterNetwork], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if contradictions := "; ".join(self._contradictions()):
            raise ValueError(contradictions)
        return self

    def _contradictions(self) -> Iterator[str]:
        by_ssh = self.launcher == "ssh"
        if by_ssh and not self.hosts:
            yield "hosts are missing: with launcher ssh they are listed, node 1 first"
        if by_ssh and self.nodes is not None:
            yield "nodes follows from hosts: leave it out"
        if len(set(self.hosts)) < len(self.hosts):
            yield "a host is there twice in hosts"
        if not by_ssh and self.nodes is None:
            yield "nodes is missing: with launcher slurm it says how many to ask for"
        if not by_ssh and self.hosts:
            yield 'hosts are Slurm\'s to choose: leave them out, or say launcher = "ssh"'
        if self.matrix_share is not None and self.memory_bytes is None:
            yield "matrix_share needs memory_bytes"

    def complete(self) -> "Cluster":
        """The same cluster with `nodes`, `interconnects` and, if known, the `value` of a node's
        Rpeak [flop/s]."""
        further: dict[str, Any] = {"interconnects": list(self.networks)}
        if self.launcher == "ssh":
            further["nodes"] = len(self.hosts)
        if peak := self.rpeak.resolved():
            further["rpeak"] = self.rpeak.changed(**peak)
        return self.changed(**further)


KINDS: dict[str, type[Testbed]] = {
    "cluster": Cluster,
    "emulated": EmulatedTestbed,
    "simulated": SimulatedTestbed,
}


def checked(table: Mapping[str, Any], file: str = "") -> Testbed:
    """A testbed from a parsed file, without what follows from it; raises FalloffError naming every
    fault."""
    what, kind = described("testbed", table, file), str(table.get("kind", ""))
    if kind in KINDS:
        return parse(KINDS[kind], table, what)
    near = nearest(kind, KINDS)
    wrong = unknown_key("kind = ", kind, KINDS) if kind else f"kind is missing: {', '.join(KINDS)}"
    raise faulty(what, [wrong, *(faults(KINDS[near], {**table, "kind": near}) if near else [])])


def read(name: str) -> Testbed:
    """The testbed of a file in data/testbeds, with what it extends and what follows from that.

    One with `designs` has the networks of these and no others. Raises FalloffError naming every
    fault in the file or in the designs.
    """
    table = extended(paths.TESTBEDS, name, "testbed", lambda base, changes: {**base, **changes})
    chosen = table.get("designs")
    if isinstance(chosen, str):
        designs = switch_designs.read(paths.DESIGNS / f"{chosen}.toml")
        table |= {"network": designs.networks(), "networks": designs.names()}
    testbed = checked(table, name)
    return testbed.complete() if isinstance(testbed, Cluster) else testbed
