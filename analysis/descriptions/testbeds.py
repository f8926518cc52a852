"""Testbeds, as the files of data/testbeds describe them: clusters, emulated and simulated ones, and
the tables of which a description is made."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from analysis import paths
from analysis.descriptions import switch_designs
from analysis.descriptions.networks import Rate
from analysis.descriptions.toml_tables import (
    Blocks,
    Count,
    Limit,
    Line,
    Name,
    Nodes,
    NotNegative,
    Positive,
    Real,
    Ruled,
    Settings,
    Share,
    TomlTable,
    Word,
    YesOrNo,
    described,
    extended,
    fault,
    faults,
    must_be,
    parse,
    refuse,
    text,
)
from runners.records.description_rules import Rule, one_of
from runners.records.record import faulty, nearest, unknown_key

UNKNOWN = "unknown"

# Texts become parts of command lines on other machines, some in lists separated by commas or
# blanks. Open MPI passes them to a shell on every node, so they must not contain letters with a
# meaning there.
Argument = Annotated[
    str, text(r"[A-Za-z0-9_./,:=+@%^-]+", "words of letters, digits and _./,:=+@%^-")
]
FilePath = Annotated[str, text(r"[A-Za-z0-9_~/.][A-Za-z0-9_~/.,+@=-]*", "a path without blanks")]
Host = Annotated[str, text(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*", "a name of letters, digits and _.@+-")]
Program = Annotated[
    str, text(r"[A-Za-z0-9_/.][A-Za-z0-9_/.+-]*", "the name of a program, or its path")
]
Arguments = Annotated[
    list[Argument], must_be("a list for mpirun of words of letters, digits and _./,:=+@%^-")
]
Parameter = Annotated[
    YesOrNo | Real | Argument,
    must_be("a number, true, false, or words of letters, digits and _./,:=+@%^-"),
]
Buffer = Annotated[
    list[Count], Field(min_length=3, max_length=3), must_be("least, first and most bytes")
]
Unknown = Literal["unknown"]
PositiveOrUnknown = Annotated[Positive | Unknown, must_be('a number above 0, or "unknown"')]
CountOrUnknown = Annotated[Count | Unknown, must_be('a whole number from 1, or "unknown"')]
PartOf1 = Annotated[float, Ruled(Rule("a share above 0, at most 1", (int, float), above=0, most=1))]


def _is_subnet(value: str) -> str:
    if "/" not in value:
        raise ValueError
    ipaddress.ip_network(value)
    return value


Subnet = Annotated[str, AfterValidator(_is_subnet), must_be("a subnet as 10.1.0.0/24")]


class SourcedNumber(TomlTable):
    """A number with its unit and source, and perhaps the ends of its plausible range. Infinite: no
    limit."""

    value: Limit
    low: Limit | None = None
    high: Limit | None = None
    unit: Name
    source: Name


class Peak(TomlTable):
    """Rpeak of a node: its value, or cores x flop per cycle x clock."""

    value: PositiveOrUnknown | None = None
    """flop/s"""
    unit: Annotated[Literal["flop/s"], must_be("flop/s")] | None = None
    source: Line | None = None
    cores: CountOrUnknown | None = None
    flop_per_cycle: PositiveOrUnknown | None = None
    clock_hz: PositiveOrUnknown | None = None
    clock: Annotated[str, Ruled(one_of(["base", "AVX", "turbo", UNKNOWN]))] | None = None

    @model_validator(mode="after")
    def _is_sourced(self) -> Self:
        if self.value is not None and not (self.unit and self.source):
            raise ValueError("value needs unit, source")
        return self

    def resolved(self) -> dict[str, Any] | None:
        """Rpeak as {value [flop/s], unit, source}: the stated one, or that of its parts; None if
        one of these is unknown."""
        if self.value not in (None, UNKNOWN):
            return {"value": self.value, "unit": self.unit, "source": self.source}
        parts: list[Any] = [self.cores, self.flop_per_cycle, self.clock_hz, self.clock]
        if None in parts or UNKNOWN in parts:
            return None
        cores, per_cycle, clock_hz, clock = parts
        how = f"{cores} cores x {per_cycle} flop per cycle x {clock_hz / 1e9:g} GHz ({clock} clock)"
        return {"value": cores * per_cycle * clock_hz, "unit": "flop/s", "source": how}


class NetworkTable(TomlTable):
    """What a testbed says of one network itself, instead of data/interconnects.toml."""

    name: Line | None = None
    short: Line | None = None
    source: Line | None = None
    rate_bit_s: Rate | None = None
    """on the wire [bit/s]"""
    mtu: Count | None = None
    largest_packet_bytes: Count | None = None
    """the most that passes as one packet and is cut into frames after the shaper [B]"""
    latency_s: NotNegative | None = None
    """of a message on the modelled cluster [s]; nodes that stretch need `machine_message_s`"""


class ClusterNetwork(TomlTable):
    """A network of a real cluster, found by its subnet or its interface."""

    name: Line | None = None
    short: Line | None = None
    source: Line | None = None
    subnet: Subnet | None = None
    interface: Host | None = None
    rdma: (
        Annotated[str, text(r"[A-Za-z0-9_]+:[0-9]+", "a device and its port, as mlx5_0:1")] | None
    ) = None
    rate_bit_s: Rate | None = None
    mtu: Count | None = None
    switch: Line | None = None
    mpi: Arguments | None = None
    """options of mpirun that select the transport"""
    environment: dict[Word, Argument] = {}

    @model_validator(mode="after")
    def _can_be_found(self) -> Self:
        lacking = []
        if not (self.subnet or self.interface):
            lacking.append(
                "needs a subnet or an interface, to find its addresses and to count its bytes"
            )
        if self.rdma and self.mpi is None:
            lacking.append("rdma needs mpi: the words for mpirun that make it use the port")
        if lacking:
            raise ValueError("; ".join(lacking))
        return self


class Tcp(TomlTable):
    """TCP's settings on the nodes."""

    congestion_control: Host | None = None
    no_metrics_save: YesOrNo | None = None
    slow_start_after_idle: YesOrNo | None = None
    quickack: YesOrNo | None = None
    """acknowledge every segment at once"""
    rmem: Buffer | None = None
    wmem: Buffer | None = None


class Node(TomlTable):
    """A node that is paced: it computes, then sleeps until a node of this rate would have finished,
    or as many times as long as `dilation` says."""

    flop_s: Positive | None = None
    stretched: YesOrNo = False
    """whether any MPI program computes `dilation` times as long as on this machine's processor"""
    machine_message_s: Positive | None = None
    """what a message takes here, without any delay [s]"""
    dilation: Positive | None = None
    """how many times slower than on the modelled cluster everything is"""
    keep_awake: YesOrNo = False


class Scale(TomlTable):
    """The rule that gives each point of a scale model its dilation: runners/scale.py."""

    smaller: Positive
    flop_s: Positive
    machine_message_s: Positive
    message_s: dict[Word, Positive]
    least_a_node: Positive
    whole_machine_a_node: Positive | None = None
    least: Positive


class Buffers(TomlTable):
    """The rule for the sizes of socket buffers: runners/scale.py."""

    hold_s: Positive
    least_bytes: Positive
    most_bytes: Positive


class Switch(TomlTable):
    """The switch of points with `buffer_bytes`, or with `free_bytes` of all on links of a rate."""

    delay_s: NotNegative = 0
    """from the end of a frame on one link to its end on the next, besides its time on the wire and
    in the queue [s], slowed as described"""
    free_bytes: Count | None = None
    """of each frame that take no time on the wire, such as its headers [B]; the switch cuts through
    and has room for everything"""


class ShaperTable(TomlTable):
    """What leaves at once after a pause: as much as passes in `burst_s`, or `burst_bytes`."""

    burst_s: Positive | None = None
    burst_bytes: Positive | None = None
    late_s: Positive | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.burst_bytes is None) != (self.late_s is None):
            raise ValueError("burst_bytes and late_s need each other")
        if None not in (self.burst_s, self.burst_bytes):
            raise ValueError("say burst_s or burst_bytes, not both")
        return self


class Offloads(TomlTable):
    """Whether interfaces cut packets into frames, and put frames together."""

    tso: YesOrNo
    gso: YesOrNo
    gro: YesOrNo


class Slow(TomlTable):
    """Planted faults by node: shares of the rates of the others."""

    links: dict[str, PartOf1] = {}
    nodes: dict[str, PartOf1] = {}


class Cpu(TomlTable):
    """Accounting of the machine's CPU time."""

    baseline_s: Positive
    """how long the machine's own load is measured before each trial [s]"""


class Tree(TomlTable):
    """A network of two levels: `runners.two_level.TwoLevel` says what its numbers are."""

    nodes: Nodes | None = None
    node_bandwidth: Positive | None = None
    latency: NotNegative | None = None
    nodes_per_edge: Count
    uplinks: Count
    uplink_bandwidth: Positive
    edges_per_card: Count
    cards: Count | None = None
    card_bandwidth: Positive | None = None
    core_bandwidth: Positive | None = None


class SimulatedNetwork(TomlTable):
    """A network as the simulation models it, from one node to another."""

    bandwidth: SourcedNumber
    """payload of long messages [B/s]"""
    latency: SourcedNumber
    """of a short message [s]"""
    eager_bytes: SourcedNumber | None = None
    by_size: list[list[Real]] | None = None
    """from a size [B] on: factors of latency and bandwidth"""
    load: list[list[Real]] | None = None
    """nodes at once, and the factor of the latency"""
    tree: Tree | None = None


class Rates(TomlTable):
    """The rates of a simulated node; docs/experiments.md says what each is."""

    dgemm_flop_s: SourcedNumber
    dgemm_k_half: SourcedNumber
    dgemm_mn_half: SourcedNumber
    dtrsm_share: SourcedNumber
    node_byte_s: SourcedNumber
    core_byte_s: SourcedNumber
    strided_s: SourcedNumber


class Ssh(TomlTable):
    """How ssh reaches the nodes."""

    config: FilePath
    """for ssh -F, instead of the usual files"""


class Slurm(TomlTable):
    """How Slurm is asked for nodes."""

    partition: Host | None = None
    time_limit_s: Positive | None = None
    account: Host | None = None
    options: Annotated[
        list[Annotated[str, text("--[!-~]+", "an option")]], must_be("a list of options of sbatch")
    ] = []


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
