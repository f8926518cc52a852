"""The user's own cluster, by ssh and mpirun or inside an allocation of Slurm: real nodes, so evidence is `measured`.

Nodes that do not answer are lost: what needs more nodes than are left is unavailable, the rest runs on the others.
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from runners import tools
from runners.record import Command, Execution, FalloffError, Transcript, Trial
from runners.testbeds import cluster_launch, fabric, lease, remote

STANDS_FOR: Dict[str, str] = {}  # every tool runs itself

_FOLDER, _STATE, _FILES = (
    tools.PROBES / f"node_{name}.py" for name in ("folder", "state", "files")
)
_LAUNCHED_BY = {"ssh": "ssh", "slurm": "srun"}
# Prefixes of the user's variables that change what programs send by.
_MPI_VARIABLES = ("OMPI_", "PRTE_", "PMIX_", "UCX_", "OMP_")


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """Each reason why the cluster cannot be used from here, in a line with the remedy; no node is asked."""
    try:
        cluster = remote.cluster(description)
        cluster_launch.find_mpirun(cluster, description.get("tools", {}))
    except FalloffError as error:
        return [str(error)]
    program = _LAUNCHED_BY[cluster.launcher]
    if shutil.which(program):
        return []
    return [f"{program} is not here: run this where users of the cluster log in"]


@contextmanager
def open_testbed(
    description: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> Iterator["OnCluster"]:
    """Make a folder on every host that answers; on leaving, also when this program dies, hosts remove it themselves.

    `description` is a complete one with its hosts, `interconnects` are by the names of its networks. SIGTERM becomes
    SystemExit. Raises FalloffError when it cannot be used, no host answers, or one is not on a network.
    """
    title = f"testbed {description['name']}"
    reasons = unavailable(description)
    if reasons:
        raise FalloffError(f"{title} cannot be used from here: {'; '.join(reasons)}")
    cluster = remote.cluster(description)
    mpirun = cluster_launch.find_mpirun(cluster, description.get("tools", {}))
    networks = {name: description["networks"][name] for name in interconnects}
    name = f"falloff-{secrets.token_hex(8)}"
    folder = f"{description.get('scratch', '/tmp')}/{name}"
    scratch = f"{tempfile.gettempdir()}/{name}-here"
    with lease.sigterm_exits(), remote.held(remote.HERE, _FOLDER, {"here": [scratch]}) as here:
        if "error" in here["here"]:
            raise FalloffError(f"{scratch} cannot be made: {here['here']['error']}")
        with remote.held(cluster, _FOLDER, {host: [folder] for host in cluster.hosts}) as answers:
            testbed = OnCluster(cluster, description, networks, folder, mpirun, Path(scratch))
            testbed.lose(answers)
            if not testbed.alive:
                raise FalloffError(f"{title}: no host answers; {testbed.losses()}")
            testbed.prepare()
            yield testbed


@dataclass(frozen=True)
class OnCluster:
    """The testbed while it is open.

    `folder` is ours on every host, `scratch` on this machine; `lost` has the reason for each host that is lost, which
    stays so, since its folder and its part of a trial are gone; `places` are by host and network.
    """

    cluster: remote.Cluster
    description: Mapping[str, Any]
    networks: Mapping[str, Mapping[str, Any]]
    folder: str
    mpirun: str
    scratch: Path
    lost: Dict[str, str] = field(default_factory=dict)
    places: Dict[str, Dict[str, fabric.Place]] = field(default_factory=dict)
    _paths: Dict[str, str] = field(default_factory=dict)

    evidence = "measured"
    at_once = 1  # trials share the network

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    @property
    def alive(self) -> List[str]:
        """The hosts that are not lost, node 1 first."""
        return [host for host in self.cluster.hosts if host not in self.lost]

    def losses(self) -> str:
        """Who is lost and why, in words."""
        return "; ".join(f"{host} is lost: {reason}" for host, reason in self.lost.items())

    def lose(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Hosts whose answer is an error are lost from now on."""
        for host, answer in answers.items():
            if "error" in answer:
                self.lost[host] = answer["error"]

    def prepare(self) -> None:
        """Find every host on the networks, and put there the programs that are ours.

        Raises FalloffError naming every host that is not on one of them.
        """
        astray = []
        for host, state in self.states(self.alive).items():
            self.places[host] = {}
            for name, network in self.networks.items():
                try:
                    self.places[host][name] = fabric.place(state, network)
                except FalloffError as error:
                    astray.append(f"{error}: correct networks.{name} of the testbed")
        if astray:
            raise FalloffError("\n".join(astray))
        scripts = [
            path for path in tools.PROBES.glob("[a-z]*.py") if not path.name.startswith("node_")
        ]
        texts = {path.name: path.read_text(encoding="utf-8") for path in scripts}
        self._ask(self.alive, _FILES, [self.folder, json.dumps(texts)])

    def states(self, hosts: Sequence[str]) -> Dict[str, fabric.State]:
        """The states of those of the hosts that answer and still have our folder; the others are lost from now on."""
        return self._ask(hosts, _STATE, ["{}", self.folder])

    def words(self, tool: str) -> List[str]:
        """The first words of a tool's command line on every host.

        Raises FalloffError with the remedy when it is not on all of them, at the same path: mpirun takes but one.
        """
        if (tools.PROBES / f"{tool}.py").exists():
            return [self.cluster.python, f"{self.folder}/{tool}.py"]
        if tool not in self._paths:
            self._paths[tool] = self._path(tool)
        return [self._paths[tool]]

    def missing(self, needs: Sequence[str]) -> List[str]:
        """The remedies for those of the needed tools that are not on every host."""
        remedies = []
        for tool in needs:
            try:
                self.words(tool)
            except FalloffError as error:
                remedies.append(str(error))
        return remedies

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Run the commands in order on the first hosts that answer, read back and count.

        Commands stop at the first that fails. Servers, and whatever else still runs, end with the trial. Counters are
        those of `fabric.counters`. The testbed's own failures become the transcript's `fault`.
        """
        requested: Dict[str, Any] = {}
        effective: Dict[str, Any] = {}
        counters: Dict[str, Any] = {}
        executions: List[Execution] = []
        fault, needed = "", max(command.nodes for command in commands)
        before = self._first_to_answer(needed)
        hosts = list(before)
        if len(hosts) < needed:
            left = f"{len(hosts)} of {len(self.cluster.hosts)} are left: {self.losses()}"
            reason = f"{needed} nodes are needed, {left}"
            return Transcript(trial, self.name, self.evidence, (), {}, {}, unavailable=reason)
        try:
            network = trial.point["interconnect"]
            places = {host: self.places[host][network] for host in hosts}
            requested.update(fabric.wanted(self.description, network))
            files = {name: text for command in commands for name, text in command.files.items()}
            if files:
                self._ask_all(hosts, _FILES, [self.folder, json.dumps(files)])
            cluster_launch.execute(commands, self._site(places, network), self.scratch, executions)
            after = self._ask_all(hosts, _STATE, ["{}", self.folder])
            effective.update(fabric.effective(after, places))
            carried, table = {}, self.networks[network]
            for host, place in places.items():
                carried[host] = fabric.carried(before[host], after[host], table, place)
            counters.update(fabric.counters(self.cluster.hosts, carried, after))
            used = fabric.used(network, list(carried.values())) if needed > 1 else None
            if used:
                requested["fabric"], effective["fabric"] = network, used
        except (FalloffError, OSError) as error:
            fault = str(error)
        ran = tuple(executions)
        return Transcript(
            trial, self.name, self.evidence, ran, requested, effective, counters, fault
        )

    def provenance(self) -> Dict[str, Any]:
        """Every node with its state, who is lost, mpirun's version, and what of the environment sways MPI."""
        version = subprocess.run([self.mpirun, "--version"], capture_output=True, text=True).stdout
        states = self.states(self.alive)
        return {
            "launcher": self.description["launcher"],
            "mpirun": {"path": self.mpirun, "version": (version.splitlines() or [None])[0]},
            "environment": {
                name: os.environ[name] for name in os.environ if name.startswith(_MPI_VARIABLES)
            },
            "lost": dict(self.lost),
            "nodes": {
                host: {
                    "node": self.cluster.hosts.index(host) + 1,
                    "networks": {name: vars(place) for name, place in self.places[host].items()},
                    **state,
                }
                for host, state in states.items()
            },
        }

    def _site(self, places: Mapping[str, fabric.Place], network: str) -> cluster_launch.Site:
        return cluster_launch.Site(
            cluster=self.cluster,
            names=tuple(places),
            addresses=tuple(place.address for place in places.values()),
            folder=self.folder,
            description=self.description,
            network=self.networks[network],
            mpirun=self.mpirun,
            words=self.words,
        )

    def _first_to_answer(self, count: int) -> Dict[str, fabric.State]:
        """The states of the first so many hosts that answer; fewer when no more are left."""
        while True:
            chosen = self.alive[:count]
            answers = self.states(chosen)
            if len(answers) == len(chosen):
                return answers

    def _path(self, tool: str) -> str:
        configured = self.description.get("tools", {})
        # PATH is no silent substitute for a wrong path of the user's.
        candidates = [configured[tool]] if tool in configured else [tool, str(tools.BUILT / tool)]
        questions = json.dumps({tool: candidates})
        answers = self._ask(self.alive, _STATE, [questions, self.folder])
        programs = {host: answer["tools"][tool] for host, answer in answers.items()}
        paths = {host: program and program["path"] for host, program in programs.items()}
        remedy = f"name its path as {tool} under [tools] of the testbed"
        without = [host for host, path in paths.items() if path is None]
        if without:
            raise FalloffError(
                f"{candidates[0]} is no program on {', '.join(without)}: install it, or {remedy}"
            )
        if len(set(paths.values())) != 1:
            where = ", ".join(f"{path} on {host}" for host, path in paths.items())
            raise FalloffError(f"{tool} is {where or 'nowhere, as no host answers'}: {remedy}")
        return next(iter(paths.values()))

    def _ask(self, hosts: Sequence[str], script: Path, arguments: Sequence[str]) -> Dict[str, Any]:
        """What a script prints on those of the hosts that answer; the others are lost from now on."""
        answers = remote.ask(replace(self.cluster, hosts=tuple(hosts)), script, arguments)
        self.lose(answers)
        return {host: answer for host, answer in answers.items() if "error" not in answer}

    def _ask_all(
        self, hosts: Sequence[str], script: Path, arguments: Sequence[str]
    ) -> Dict[str, Any]:
        """The same, of all of the hosts; raises FalloffError when one is lost."""
        answers = self._ask(hosts, script, arguments)
        if len(answers) < len(hosts):
            raise FalloffError(self.losses())
        return answers
