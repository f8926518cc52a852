"""The hosts of an open cluster: who still answers, where each is on the networks, and which programs are there."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from runners import tools
from runners.record import FalloffError
from runners.testbeds import fabric, remote

_STATE, _FILES, _SET, _TOOLS = (tools.PROBES / f"node_{what}.py" for what in ("state", "files", "set", "tools"))


@dataclass(frozen=True)
class Hosts:
    """All hosts of a cluster with `folder`, the same on each, and the reason for each host that is `lost`.

    A host that once did not answer stays lost: its folder and its part of a trial are gone. `configured` are the
    user's paths of tools; `places` are by host and network.
    """

    cluster: remote.Cluster
    folder: str
    configured: Mapping[str, str]
    lost: Dict[str, str]
    places: Dict[str, Dict[str, fabric.Place]] = field(default_factory=dict)
    _paths: Dict[str, str] = field(default_factory=dict)

    @property
    def all(self) -> Sequence[str]:
        """Every host, node 1 first."""
        return self.cluster.hosts

    @property
    def alive(self) -> List[str]:
        """The hosts that are not lost, in the same order."""
        return [host for host in self.all if host not in self.lost]

    def losses(self) -> str:
        """Who is lost and why, in words."""
        return "; ".join(f"{host} is lost: {reason}" for host, reason in self.lost.items())

    def prepare(self, networks: Mapping[str, Mapping[str, Any]]) -> None:
        """Find every host on the networks, and put there the programs that are ours.

        Raises FalloffError naming every host that is not on one of them.
        """
        astray = []
        for host, state in self.states(self.alive).items():
            self.places[host] = {}
            for name, network in networks.items():
                try:
                    self.places[host][name] = fabric.place(state, network)
                except FalloffError as error:
                    astray.append(f"{error}: correct networks.{name} of the testbed")
        if astray:
            raise FalloffError("\n".join(astray))
        own = [path for path in tools.PROBES.glob("[a-z]*.py") if not path.name.startswith("node_")]
        texts = {path.name: path.read_text(encoding="utf-8") for path in own}
        self._ask(self.alive, _FILES, [self.folder, json.dumps(texts)])

    def states(self, hosts: Sequence[str]) -> Dict[str, fabric.State]:
        """The states of those of the hosts that answer and still have our folder; the others are lost from now on."""
        return self._ask(hosts, _STATE, [self.folder])

    def first_to_answer(self, count: int) -> Dict[str, fabric.State]:
        """The states of the first so many hosts that answer; fewer when no more are left."""
        while True:
            chosen = self.alive[:count]
            answers = self.states(chosen)
            if len(answers) == len(chosen):
                return answers

    def write(self, hosts: Sequence[str], files: Mapping[str, str]) -> None:
        """Write files into the folder of each host; raises FalloffError when one is lost."""
        if files and len(self._ask(hosts, _FILES, [self.folder, json.dumps(files)])) < len(hosts):
            raise FalloffError(self.losses())

    def words(self, tool: str) -> List[str]:
        """The first words of a tool's command line on every host.

        Raises FalloffError with the remedy when it is not on all of them, at the same path: mpirun takes but one.
        """
        if (tools.PROBES / f"{tool}.py").exists():
            return [self.cluster.python, f"{self.folder}/{tool}.py"]
        if tool not in self._paths:
            self._paths[tool] = self._path(tool)
        return [self._paths[tool]]

    @contextmanager
    def set(self, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
        """Give hosts settings of node_set.py, which they put back on leaving, or when this program is gone.

        Raises FalloffError with the reason when one may not or cannot be changed.
        """
        with remote.held(self.cluster, _SET, {host: [json.dumps(own)] for host, own in settings.items()}) as answers:
            refused = [f"{host}: {answer['error']}" for host, answer in answers.items() if "error" in answer]
            if refused:
                raise FalloffError(f"may_set allows what cannot be set there: {'; '.join(refused)}")
            yield

    def _path(self, tool: str) -> str:
        # PATH is no silent substitute for a wrong path of the user's.
        candidates = [self.configured[tool]] if tool in self.configured else [tool, str(tools.BUILT / tool)]
        found = {host: answer["path"] for host, answer in self._ask(self.alive, _TOOLS, candidates).items()}
        remedy = f"name its path as {tool} under [tools] of the testbed"
        without = [host for host, path in found.items() if path is None]
        if without:
            raise FalloffError(f"{candidates[0]} is no program on {', '.join(without)}: install it, or {remedy}")
        if len(set(found.values())) != 1:
            there = ", ".join(f"{path} on {host}" for host, path in found.items())
            raise FalloffError(f"{tool} is {there or 'nowhere, as no host answers'}: {remedy}")
        return next(iter(found.values()))

    def _ask(self, hosts: Sequence[str], script: Path, arguments: Sequence[str] = ()) -> Dict[str, Any]:
        """What a script prints on those of the hosts that answer; the others are lost from now on."""
        answers = remote.ask(replace(self.cluster, hosts=tuple(hosts)), script, arguments)
        self.lost.update((host, answer["error"]) for host, answer in answers.items() if "error" in answer)
        return {host: answer for host, answer in answers.items() if "error" not in answer}
