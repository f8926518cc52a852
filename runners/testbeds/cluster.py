"""The user's own cluster, by ssh and mpirun or inside an allocation of Slurm: real nodes, so evidence is `measured`.

Nodes that do not answer are lost: what needs more nodes than are left is unavailable, the rest runs on the others.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ContextManager, Dict, Iterator, List, Mapping, Sequence

from runners import tools
from runners.record import Command, Execution, FalloffError, Transcript, Trial
from runners.testbeds import cluster_launch, cluster_settings, fabric, lease, remote
from runners.testbeds.cluster_hosts import Hosts

STANDS_FOR: Dict[str, str] = {}  # every tool runs itself

_FOLDER = tools.PROBES / "node_folder.py"
_LAUNCHED_BY = {"ssh": "ssh", "slurm": "srun"}
# Variables of the user's that change what programs send by.
_TELLING = ("OMPI_", "PRTE_", "PMIX_", "UCX_", "OMP_")


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why the cluster cannot be used from here; no node is asked."""
    try:
        there = remote.cluster(description)
        cluster_launch.find_mpirun(there, description.get("tools", {}))
    except FalloffError as error:
        return [str(error)]
    program = _LAUNCHED_BY[there.launcher]
    return [] if shutil.which(program) else [f"{program} is not here: run this where users of the cluster log in"]


@contextmanager
def open_testbed(description: Mapping[str, Any], interconnects: Mapping[str, Any]) -> Iterator["OnCluster"]:
    """Make a folder on every host that answers; on leaving, also when this program dies, hosts remove it themselves.

    `description` is a complete one with its hosts, `interconnects` are by the names of its networks. SIGTERM becomes
    SystemExit. Raises FalloffError when it cannot be used, no host answers, or one is not on a network.
    """
    reasons = unavailable(description)
    if reasons:
        raise FalloffError(f"testbed {description['name']} cannot be used from here: {'; '.join(reasons)}")
    there, configured = remote.cluster(description), description.get("tools", {})
    folder = f"{description.get('scratch', '/tmp')}/{_new_name()}"
    with lease.sigterm_exits(), _scratch() as scratch, remote.held(
        there, _FOLDER, {host: [folder] for host in there.hosts}
    ) as made:
        lost = {host: answer["error"] for host, answer in made.items() if "error" in answer}
        hosts = Hosts(there, folder, configured, lost)
        if not hosts.alive:
            raise FalloffError(f"testbed {description['name']}: no host answers; {hosts.losses()}")
        networks = {name: description["networks"][name] for name in interconnects}
        hosts.prepare(networks)
        yield OnCluster(hosts, description, networks, cluster_launch.find_mpirun(there, configured), scratch)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder on this machine, which is removed in the same way: also when this program is killed."""
    folder = Path(tempfile.gettempdir()) / _new_name()
    with remote.held(remote.HERE, _FOLDER, {"here": [str(folder)]}) as made:
        if "error" in made["here"]:
            raise FalloffError(f"{folder} cannot be made: {made['here']['error']}")
        yield folder


def _new_name() -> str:
    return f"falloff-{secrets.token_hex(8)}"


@dataclass(frozen=True)
class OnCluster:
    """The testbed while it is open; `scratch` is a folder on this machine."""

    hosts: Hosts
    description: Mapping[str, Any]
    networks: Mapping[str, Mapping[str, Any]]
    mpirun: str
    scratch: Path

    evidence = "measured"
    at_once = 1  # trials share the network

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    @property
    def nodes(self) -> int:
        """How many nodes it has, lost ones included."""
        return len(self.hosts.all)

    def missing(self, needs: Sequence[str]) -> List[str]:
        """The remedies for those of the needed tools that are not on every host."""
        remedies = []
        for tool in needs:
            try:
                self.hosts.words(tool)
            except FalloffError as error:
                remedies.append(str(error))
        return remedies

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Run the commands in order on the first hosts that answer, read back and count.

        Commands stop at the first that fails. Servers, and whatever else still runs, end with the trial.
        Counters are `bytes_sent` and `bytes_received` (B, on the network that was asked for, RDMA included) and
        `node_clock` (Hz) and `node_temperature` (degC, the hottest sensor) of every node afterwards, and
        `fabric_share` (1, of all bytes sent). The testbed's own failures become the transcript's `fault`.
        """
        requested: Dict[str, Any] = {}
        effective: Dict[str, Any] = {}
        counters: Dict[str, Any] = {}
        executions: List[Execution] = []
        fault, needed = "", max(command.nodes for command in commands)
        before = self.hosts.first_to_answer(needed)
        if len(before) < needed:
            left = f"{needed} nodes are needed, {len(before)} of {self.nodes} are left: {self.hosts.losses()}"
            return Transcript(trial, self.name, self.evidence, (), {}, {}, unavailable=left)
        try:
            network = trial.point["interconnect"]
            places = {host: self.hosts.places[host][network] for host in before}
            requested.update(cluster_settings.wanted(self.description, network))
            with self._set(places, network):
                self.hosts.write(list(before), {name: text for it in commands for name, text in it.files.items()})
                cluster_launch.execute(commands, self._site(places, network), self.scratch, executions)
                after = self.hosts.states(list(before))
            if len(after) < needed:
                raise FalloffError(self.hosts.losses())
            effective.update(cluster_settings.read_back(after, places))
            carried = {
                host: fabric.carried(before[host], after[host], self.networks[network], places[host])
                for host in after
            }
            counters.update(cluster_settings.counters(self.hosts.all, carried, after))
            by = fabric.used(network, list(carried.values())) if needed > 1 else None
            if by:
                requested["fabric"], effective["fabric"] = network, by
        except (FalloffError, OSError) as error:
            fault = str(error)
        return Transcript(
            trial, self.name, self.evidence, tuple(executions), requested, effective, counters, fault
        )

    def provenance(self) -> Dict[str, Any]:
        """Every node with its state, who is lost, mpirun's version, and what of the environment sways MPI."""
        said = subprocess.run([self.mpirun, "--version"], capture_output=True, text=True).stdout.splitlines()
        states = self.hosts.states(self.hosts.alive)
        return {
            "launcher": self.description["launcher"],
            "mpirun": {"path": self.mpirun, "version": said[0] if said else None},
            "environment": {name: value for name, value in os.environ.items() if name.startswith(_TELLING)},
            "lost": dict(self.hosts.lost),
            "nodes": {
                host: {
                    "node": node,
                    "networks": {name: vars(place) for name, place in self.hosts.places[host].items()},
                    **states[host],
                }
                for node, host in enumerate(self.hosts.all, start=1)
                if host in states
            },
        }

    def _site(self, places: Mapping[str, fabric.Place], network: str) -> cluster_launch.Site:
        addresses = tuple(place.address for place in places.values())
        return cluster_launch.Site(
            self.hosts, tuple(places), addresses, self.description, self.networks[network], self.mpirun
        )

    def _set(self, places: Mapping[str, fabric.Place], network: str) -> ContextManager[None]:
        """Have the hosts set what may be set, until the trial is over."""
        own = {
            host: cluster_settings.to_set(self.description, network, place.interface)
            for host, place in places.items()
        }
        return self.hosts.set(own) if any(own.values()) else nullcontext()
