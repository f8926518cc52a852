"""The user's own cluster, by ssh and mpirun or inside a Slurm allocation: real nodes, so evidence
is `measured`.

Nodes that do not answer are lost. A trial that needs more nodes than are left is unavailable; the
others run on the remaining nodes. The network asked for must be the one used. This is checked by
the bytes between two states of a node, which runners/probes/node_state.py prints.
"""

import ipaddress
import json
import math
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

from runners import executables
from runners.probes.guard import LISTENS
from runners.records.description_rules import NAME, Rule
from runners.records.record import Command, Description, FalloffError, Transcript, Trial
from runners.testbeds import lease, programs, remote
from runners.testbeds.settings import all_agreed, holders, worded

STANDS_FOR: dict[str, str] = {}  # every tool runs itself
IS_HERE = False  # its nodes are other machines, which are checked for tools when it is opened
NEEDS_ROOT = False

# The settings of a point that this testbed reads.
POINT: Mapping[str, Rule] = {"interconnect": NAME}

State = Mapping[str, Any]

_FOLDER, _STATE = (executables.PROBES / f"node_{name}.py" for name in ("folder", "state"))
_GUARD = executables.PROBES / "guard.py"
_SILENCE = f"{remote.SILENCE_S:g}"  # after so many seconds without a word they end
_LAUNCHED_BY = {"ssh": "ssh", "slurm": "srun"}
# Prefixes of the user's variables that change how programs communicate.
_MPI_VARIABLES = ("OMPI_", "PRTE_", "PMIX_", "UCX_", "OMP_")

# A guard asks a program to end before killing it, and ssh needs some time to notice a lost host.
_SECONDS_TO_END = 25.0
_SECONDS_TO_SERVE = 30.0
# By default Open MPI's daemons notice a lost connection after 8 minutes; this makes it one minute.
_KEEPALIVE = {
    "oob_tcp_keepalive_time": "30",
    "oob_tcp_keepalive_intvl": "10",
    "oob_tcp_keepalive_probes": "3",
}

_WAYS = ("sent", "received")
# Other traffic of a node during a trial [B]: answers to ssh, mpirun's own messages, monitoring.
_BACKGROUND = 1e6
# Share of all bytes, beyond the background. If more goes elsewhere, the trial did not use the
# network asked for.
_LARGEST_SHARE_ELSEWHERE = 0.05


def unavailable(description: Description) -> list[str]:
    """Each reason why the cluster cannot be used from here, one line with the remedy. No node is
    asked."""
    try:
        remote.require_hosts(description)
        find_mpirun(description)
    except FalloffError as error:
        return [str(error)]
    program = _LAUNCHED_BY[description["launcher"]]
    if shutil.which(program):
        return []
    return [f"{program} is not here: run this where users of the cluster log in"]


def find_mpirun(description: Description) -> str:
    """The path of mpirun on this machine: the configured one, else that of the cluster's modules.

    Raises FalloffError with the remedy if there is none.
    """
    configured, modules = description.get("tools", {}), description.get("modules")
    if "mpirun" in configured or not modules:
        return executables.find("mpirun", configured)
    search = remote.with_modules(description, ["bash", "-c", "type -P mpirun"])
    paths = subprocess.run(search, capture_output=True, text=True).stdout.split()
    if not paths:
        raise FalloffError(
            f"the modules {', '.join(modules)} bring no mpirun here: correct `modules`"
        )
    return paths[-1]


@contextmanager
def open_testbed(description: Description, interconnects: Description) -> Iterator["OnCluster"]:
    """Make a folder on every host that answers. On leaving, or if this program dies, the hosts
    remove it themselves.

    `description` is complete, with its hosts; `interconnects` are by the names of its networks.
    SIGTERM and SIGHUP become SystemExit. Raises FalloffError if the testbed cannot be used, no host
    answers, or a host is not on a network.
    """
    title = f"testbed {description['name']}"
    if reasons := unavailable(description):
        raise FalloffError(f"{title} cannot be used from here: {'; '.join(reasons)}")
    mpirun = find_mpirun(description)
    networks = {name: description["networks"][name] for name in interconnects}
    folder = f"{description.get('scratch', '/tmp')}/falloff-{secrets.token_hex(8)}"
    with lease.signals_exit(), remote.held(description, _FOLDER, [_SILENCE, folder]) as answers:
        testbed = OnCluster(description, networks, folder, mpirun)
        testbed.lose(answers)
        if not testbed.alive:
            raise FalloffError(f"{title}: no host answers; {testbed.losses()}")
        testbed.prepare()
        yield testbed


@dataclass(frozen=True)
class Place:
    """A node's interface on a network, and its address there."""

    interface: str
    address: str


@dataclass(frozen=True)
class OnCluster:
    """The open testbed.

    `folder` is ours on every host. `lost` has the reason for each lost host; a host stays lost,
    because its folder and its part of a trial are gone. `places` are by host and network, `paths`
    by tool.
    """

    description: Description
    networks: Description
    folder: str
    mpirun: str
    lost: dict[str, str] = field(default_factory=dict)
    places: dict[str, dict[str, Place]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    evidence = "measured"

    def load(self, trial: Trial) -> float:
        """The share of the cluster that a trial takes [1]: all of it, because trials share the
        network."""
        return 1.0

    @property
    def alive(self) -> list[str]:
        """The hosts that are not lost, starting with node 1."""
        return [host for host in self.description["hosts"] if host not in self.lost]

    def losses(self) -> str:
        """The lost hosts and why, in words."""
        return "; ".join(f"{host} is lost: {reason}" for host, reason in self.lost.items())

    def lose(self, answers: Mapping[str, State]) -> None:
        """Mark hosts whose answer is an error as lost from now on."""
        for host, answer in answers.items():
            if "error" in answer:
                self.lost[host] = answer["error"]

    def prepare(self) -> None:
        """Find every host on the networks, and copy our own programs there.

        Raises FalloffError naming every host that is not on one of them.
        """
        scripts = executables.PROBES.glob("[a-z]*.py")
        texts = {
            path.name: path.read_text(encoding="utf-8")
            for path in scripts
            if not path.name.startswith("node_")
        }
        astray = []
        for host, state in self.states(self.alive, texts).items():
            self.places[host] = {}
            for name, network in self.networks.items():
                try:
                    self.places[host][name] = place(state, network)
                except FalloffError as error:
                    astray.append(f"{error}: correct networks.{name} of the testbed")
        if astray:
            raise FalloffError("\n".join(astray))

    def states(
        self,
        hosts: Sequence[str],
        files: Mapping[str, str] = {},
        candidates: Mapping[str, Sequence[str]] = {},
    ) -> dict[str, State]:
        """The states of those hosts that answer and still have our folder, into which `files` are
        put by name; `candidates` are those of tools. The other hosts are lost from now on."""
        words = [json.dumps(candidates), self.folder, json.dumps(files)]
        answers = remote.ask({**self.description, "hosts": hosts}, _STATE, words)
        self.lose(answers)
        return {host: answer for host, answer in answers.items() if "error" not in answer}

    def require(self, needs: Sequence[str]) -> None:
        """Find these tools on every host, each at the same path, because mpirun accepts only one.

        Raises FalloffError with the remedy for each tool that is missing.
        """
        configured, faults = self.description.get("tools", {}), []
        candidates = {
            # PATH is no silent substitute for a wrong path of the user's.
            tool: [configured[tool]]
            if tool in configured
            else [str(executables.BUILT / tool), tool]
            for tool in needs
            if not _is_probe(tool)
        }
        answers = self.states(self.alive, {}, candidates)
        for tool in candidates:
            programs = {host: answer["tools"][tool] for host, answer in answers.items()}
            without = ", ".join(host for host, program in programs.items() if not program)
            remedy = f"name its path as {tool} under [tools] of the testbed"
            if without:
                missing = f"{configured.get(tool, tool)} is no program on {without}"
                faults.append(f"{missing}: install it, or {remedy}")
                continue
            hosts_by_path = holders({host: program["path"] for host, program in programs.items()})
            if len(hosts_by_path) == 1:
                (self.paths[tool],) = hosts_by_path
            else:
                where = ", ".join(f"{path} on {', '.join(h)}" for path, h in hosts_by_path.items())
                faults.append(f"{tool} is {where or 'nowhere, as no host answers'}: {remedy}")
        if faults:
            raise FalloffError("\n".join(faults))

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Run the commands as `programs.run` does, on the first hosts that answer; read settings
        back and count bytes.

        Counters are `bytes_sent` and `bytes_received` [B] on the trial's network, over all hosts,
        NaN for hosts that took no part. The testbed's own failures become the transcript's `fault`.
        """
        collected, needed = programs.TrialState(), max(command.nodes for command in commands)
        files = {name: text for command in commands for name, text in command.files.items()}
        before = self._first_to_answer(needed, files)
        hosts = list(before)
        if len(hosts) < needed:
            left = f"{len(hosts)} of {len(self.description['hosts'])} are left: {self.losses()}"
            reason = f"{needed} nodes are needed, {left}"
            return replace(collected.transcript(self, trial), unavailable=reason)
        with collected.faults():
            network = trial.point["interconnect"]
            collected.requested = self._stated(network)
            with remote.Heartbeat() as heart:

                def start(command: Command) -> programs.RunningProgram:
                    """Under runners/probes/guard.py, which ends it with this program, its
                    connection and its trial."""
                    words, pipe = self.argv(command, hosts, network), subprocess.PIPE
                    place = Path("/"), os.environ
                    started = programs.start(command.argv[0], words, *place, stdin=pipe)
                    heart.keep(started.process.stdin)
                    started.patience_s = _SECONDS_TO_END
                    started.hang_up = partial(heart.close, started.process.stdin)
                    return started

                def listens(_: Command, started: programs.RunningProgram) -> bool:
                    return LISTENS in started.complaints

                programs.run(commands, start, listens, collected.ran, _SECONDS_TO_SERVE)
            after = self.states(hosts)
            if len(after) < needed:
                raise FalloffError(self.losses())
            bytes_of, settings = {}, {}
            for host, state in after.items():
                where = self.places[host][network]
                bytes_of[host] = carried(before[host], state, self.networks[network], where)
                mtu = state["interfaces"][where.interface]["mtu"]
                settings[host] = {"mtu": mtu, **state["tcp"]}
            collected.effective = all_agreed(settings)
            for way in _WAYS:
                collected.counters[f"bytes_{way}"] = [
                    bytes_of[host][way] if host in bytes_of else math.nan
                    for host in self.description["hosts"]
                ]
            used_network = used(network, list(bytes_of.values())) if needed > 1 else None
            if used_network:
                collected.requested["fabric"], collected.effective["fabric"] = network, used_network
        return collected.transcript(self, trial)

    def argv(self, command: Command, hosts: Sequence[str], network: str) -> list[str]:
        """A command's whole line on this machine: mpirun under a guard, or the program's own guard
        on its host."""
        tool, interpreter = command.argv[0], remote.python(self.description)
        probe = [interpreter, f"{self.folder}/{tool}.py"]
        program = probe if _is_probe(tool) else [self.paths[tool]]
        program += command.arguments(lambda node: self.places[hosts[node - 1]][network].address)
        if command.ranks:
            words = [*self._mpirun(command, hosts, self.networks[network]), *program]
            launched = remote.with_modules(self.description, words)
            return [sys.executable, str(_GUARD), _SILENCE, ".", "0", *launched]
        guard = [interpreter, f"{self.folder}/{_GUARD.name}", _SILENCE, self.folder]
        words = [*guard, str(command.listens), *program]
        return remote.argv(self.description, hosts[command.node - 1], words)

    def provenance(self) -> dict:
        """Every node with its state, the lost ones, mpirun's version, and the environment variables
        that affect MPI."""
        version = subprocess.run([self.mpirun, "--version"], capture_output=True, text=True).stdout
        nodes = {}
        for host, state in self.states(self.alive).items():
            networks = {name: vars(place) for name, place in self.places[host].items()}
            number = self.description["hosts"].index(host) + 1
            nodes[host] = {"node": number, "networks": networks, **state}
        variables = os.environ.items()
        return {
            "launcher": self.description["launcher"],
            "mpirun": {"path": self.mpirun, "version": next(iter(version.splitlines()), None)},
            "environment": {
                key: value for key, value in variables if key.startswith(_MPI_VARIABLES)
            },
            "lost": dict(self.lost),
            "nodes": nodes,
        }

    def _mpirun(self, command: Command, hosts: Sequence[str], network: Description) -> list[str]:
        """mpirun by its path, so that it finds its own daemons on the hosts in the same place."""
        ranks, usual = command.ranks_per_node, self.description.get("ranks_per_node", 1)
        # All programs use the same cores of a node, however many processes share these.
        threads = max(self.description.get("threads", 1) * usual // ranks, 1)
        variables = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        variables.update(network.get("environment", {}))
        exported = [f"{name}={value}" for name, value in variables.items()]
        exported += ["PATH", "LD_LIBRARY_PATH"] if self.description.get("modules") else []
        parameters = _KEEPALIVE.copy()
        if self.description["launcher"] != "slurm":  # in an allocation mpirun asks Slurm itself
            # From here to every host, never from host to host, so hosts need no keys.
            agent = " ".join(remote.ssh(self.description))
            parameters.update(plm="rsh", plm_rsh_agent=agent, plm_rsh_no_tree_spawn="1")
        binding = self.description.get("binding", []) if ranks == usual else ["--bind-to", "none"]
        slots = ",".join(f"{host}:{ranks}" for host in hosts[: command.nodes])
        return [
            self.mpirun,
            *parameter_words(parameters),
            *transport(network),
            *([] if "--map-by" in binding else ["--map-by", "slot"]),
            *binding,
            # which rank is on which node and core: on standard error, and so in the transcript
            "--report-bindings",
            *(word for variable in exported for word in ("-x", variable)),
            *("--wdir", self.folder, "--host", slots, "-np", str(command.ranks)),
        ]

    def _stated(self, network: str) -> dict:
        """The settings that the description states for a network; others may have any value."""
        stated = {key: worded(value) for key, value in self.description.get("tcp", {}).items()}
        if "mtu" in self.networks[network]:
            stated["mtu"] = self.networks[network]["mtu"]
        return stated

    def _first_to_answer(self, count: int, files: Mapping[str, str]) -> dict[str, State]:
        """The states of the first `count` hosts that answer; fewer if no more are left."""
        answers: dict[str, State] = {}
        while len(answers) < len(chosen := self.alive[:count]):
            answers = self.states(chosen, files)
        return answers


def _is_probe(tool: str) -> bool:
    return (executables.PROBES / f"{tool}.py").exists()


def parameter_words(parameters: Mapping[str, object]) -> list[str]:
    """mpirun's words for parameters of Open MPI."""
    return [str(word) for name, value in parameters.items() for word in ("--mca", name, value)]


def transport(network: Description) -> list[str]:
    """mpirun's words that choose how MPI uses a network: its own, or TCP there, even if Open MPI
    would find a faster transport."""
    if "mpi" in network:
        return list(network["mpi"])
    where = network.get("subnet") or network["interface"]
    return parameter_words({"pml": "ob1", "btl": "self,vader,tcp", "btl_tcp_if_include": where})


def place(state: State, network: Description) -> Place:
    """The node's interface on a network of a cluster's description, and the address by which others
    reach it.

    Raises FalloffError if it has none there.
    """
    subnet = ipaddress.ip_network(network.get("subnet", "0.0.0.0/0"))
    for name, interface in state["interfaces"].items():
        if network.get("interface", name) != name:
            continue
        for address in map(ipaddress.ip_interface, interface["addresses"]):
            if address.version == subnet.version and address.ip in subnet:
                return Place(name, str(address.ip))
    wanted = [f"{key} {network[key]}" for key in ("subnet", "interface") if key in network]
    raise FalloffError(f"{state['hostname']} has no address on {' and '.join(wanted)}")


def carried(before: State, after: State, network: Description, at: Place) -> dict[str, float]:
    """Bytes `sent` and `received` by a node on the network, and those `elsewhere` that it sent on
    others.

    RDMA bypasses the interface's counters. An InfiniBand port also counts what its IP interface
    sends. Raises FalloffError if a needed counter is missing.
    """
    interfaces, ports = _grown(before, after, "interfaces"), _grown(before, after, "rdma")
    port = network.get("rdma")
    if port is not None and port not in ports:
        names = ", ".join(ports) or "none"
        raise FalloffError(
            f"{after['hostname']} has no counters of RDMA port {port}; there are {names}"
        )
    counts = [ports[port]] if port else []
    if not port or after["rdma"][port]["link_layer"] != "InfiniBand":
        counts.append(interfaces[at.interface])
    lower = after["interfaces"][at.interface]["lower"]
    elsewhere = [ports[name]["sent"] for name in ports if name != port]
    for name, interface in after["interfaces"].items():
        # The interface below a VLAN also counts the VLAN's bytes; an interface without an address
        # belongs to another one.
        same = name in (at.interface, lower) or interface["lower"] == at.interface
        if interface["addresses"] and not same:
            elsewhere.append(interfaces[name]["sent"])
    both = {way: sum(count[way] for count in counts) for way in _WAYS}
    return {**both, "elsewhere": sum(elsewhere)}


def _grown(before: State, after: State, kind: str) -> dict[str, dict[str, float]]:
    """How much the counters grew on every interface or port that existed all the time."""
    return {
        name: {way: after[kind][name][way] - before[kind][name][way] for way in _WAYS}
        for name in set(after[kind]).intersection(before[kind])
    }


def used(network: str, nodes: Sequence[Mapping[str, float]]) -> Optional[str]:
    """The network's name if it carried what these nodes sent, else in words how much went
    elsewhere.

    None if too little was sent to decide. `nodes` are from `carried`.
    """
    sent, elsewhere = (sum(node[way] for node in nodes) for way in ("sent", "elsewhere"))
    background = _BACKGROUND * len(nodes)
    if max(sent, elsewhere) <= background:
        return None
    if elsewhere <= max(background, _LARGEST_SHARE_ELSEWHERE * (sent + elsewhere)):
        return network
    return f"{network} for {sent:.3g} bytes and other interfaces for {elsewhere:.3g}"
