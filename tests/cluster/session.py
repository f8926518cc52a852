"""A command on a node in a session of its own, as a terminal gives it one, that can be interrupted or killed."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodes import Node, Nodes
from waiting import until


@dataclass(frozen=True)
class Session:
    """A command that runs on `node`; `leader` is its process' id there, and its process group's."""

    node: Node
    process: "subprocess.Popen[str]"
    leader: str

    def signal(self, name: str) -> None:
        """Send a signal (INT, KILL ...) to all processes of the group, as a terminal does."""
        done = self.node.run(["kill", f"-{name}", "--", f"-{self.leader}"])
        assert done.returncode == 0, done.stderr

    def end(self, limit_s: float = 60) -> "tuple[int, str]":
        """Wait for its end: the exit code and all that it said."""
        said, _ = self.process.communicate(timeout=limit_s)
        return self.process.returncode, said


def start(nodes: Nodes, node: Node, argv: Sequence[str], **options: object) -> Session:
    """Start a command with subprocess' options; output and complaints come together."""
    with tempfile.TemporaryDirectory(dir=nodes.shared) as folder:
        file = Path(folder) / "leader"
        # setsid would go into the background where it leads a group itself, hence --wait.
        alone = [
            "setsid",
            "--wait",
            "sh",
            "-c",
            'echo $$ >"$0.part"; mv "$0.part" "$0"; exec "$@"',
            str(file),
        ]
        pipe = subprocess.PIPE
        process = node.start(
            [*alone, *argv], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, **options
        )
        until(file.exists, "the command starts")
        return Session(node, process, file.read_text().strip())
