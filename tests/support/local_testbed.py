"""A testbed for tests of the engine: runs real commands on this machine, no network in between."""

import subprocess
import time
from contextlib import contextmanager

from runners.records.record import Command, Execution, Transcript, Trial

STANDS_FOR: dict = {}


class LocalTestbed:
    """Executes a trial's commands one after another; `effective` can be made to differ."""

    name, evidence = "local", "emulated"

    def __init__(self, effective: dict | None = None, at_once: int = 1) -> None:
        self.effective, self._at_once = effective or {}, at_once
        self.executed: list[str] = []

    def load(self, trial: Trial) -> float:
        return 1 / self._at_once

    def provenance(self) -> dict:
        return {"nodes": []}

    def run(self, trial: Trial, commands: list[Command]) -> Transcript:
        self.executed.append(trial.id)
        executions = tuple(self._execute(command) for command in commands)
        requested = {"interconnect": trial.point.get("interconnect", "")}
        return Transcript(
            trial, self.name, self.evidence, executions, requested, {**requested, **self.effective}
        )

    def _execute(self, command: Command) -> Execution:
        start = time.time()
        try:
            done = subprocess.run(
                command.argv, capture_output=True, text=True, timeout=command.timeout_s
            )
            said, code = (done.stdout, done.stderr), done.returncode
        except subprocess.TimeoutExpired:
            said, code = ("", ""), None
        return Execution(
            command.argv[0], command.argv, *said, code, start, time.time() - start, code is None
        )


@contextmanager
def open_testbed(description: dict, interconnects: dict):
    yield LocalTestbed()
