"""Programs on the hosts of a cluster, started by ssh or, inside an allocation, by Slurm's srun.

Nothing is installed there: scripts of runners/probes travel on standard input. When a cable is cut, nothing tells a
host that waits for the other side's next word. So words come regularly, and a program ends when none has come for long.
"""

import json
import os
import shlex
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Mapping, Sequence, Set

from runners.record import FalloffError

# Longer than ssh takes to notice that a host is gone and than any pause of a busy machine.
SILENCE_S = 60.0
_BEAT_S = 5.0
_AT_ONCE = 32  # an ssh server takes only so many unauthenticated connections, a controller only so many steps
_SSH_OPTIONS = (
    "BatchMode=yes",  # never ask
    "ConnectTimeout=10",
    "ServerAliveInterval=5",  # notice a host that is gone
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
)

# Its words come after it as arguments, so that no data becomes part of a shell's script. A login shell, because that
# is where module systems define `module`.
_WITH_MODULES = 'n=$1; shift; module load "${@:1:n}" >&2 || exit 1; shift "$n"; exec "$@"'

# Reads a script of so many bytes from standard input and leaves what follows to the script.
_BOOTSTRAP = "import sys; exec(compile(sys.stdin.buffer.read({size}), {name!r}, 'exec'))"


# Of a cluster, complete and with its hosts.
Description = Mapping[str, Any]
# What a script prints, or {"error": why it does not}.
Answer = Dict[str, Any]


def require_hosts(description: Description) -> None:
    """Raise FalloffError when there are no hosts; under Slurm, what runs in the allocation adds them."""
    if not description.get("hosts"):
        raise FalloffError(
            f"testbed {description['name']} has hosts only inside an allocation of Slurm: run with --submit"
        )


def ssh(description: Description) -> List[str]:
    """ssh with our options; known hosts are respected."""
    file = description.get("ssh", {}).get("config")
    config = ["-F", os.path.expanduser(file)] if file else []
    return ["ssh", *config, *(word for option in _SSH_OPTIONS for word in ("-o", option))]


def python(description: Description) -> str:
    """The interpreter on the hosts."""
    return description.get("python", "python3")


def argv(description: Description, host: str, words: Sequence[str]) -> List[str]:
    """The command line, for this machine, of a program on a host, with the cluster's modules loaded there."""
    program = with_modules(description, words)
    if description["launcher"] == "slurm":
        # Beside other steps of the job, whose cores and memory it shares: a server and its client are two.
        beside = ["--overlap", "--mem=0", "--cpu-bind=none"]
        one = ["--quiet", "--nodes=1", "--ntasks=1", f"--nodelist={host}"]
        return ["srun", *one, *beside, "--", *program]
    # ssh joins its words and the shell of the user there splits them again: each is quoted for it.
    return [*ssh(description), "--", host, shlex.join(program)]


def with_modules(description: Description, words: Sequence[str]) -> List[str]:
    """A command line that loads the cluster's environment modules first; the words themselves without any."""
    modules = description.get("modules")
    if not modules:
        return list(words)
    return ["bash", "-lc", _WITH_MODULES, "bash", str(len(modules)), *modules, *words]


def ask(
    description: Description, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> Dict[str, Answer]:
    """Run a script of runners/probes to its end on all hosts; by host its answer, as `held` gives it."""
    with held(description, script, arguments, limit_s) as answers:
        return answers


@contextmanager
def held(
    description: Description, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> Iterator[Dict[str, Answer]]:
    """Keep a script of runners/probes running on all hosts; gives by host the first JSON object that it prints on a line.

    A host that does not answer so within `limit_s` seconds, or fails, has {"error": the reason} instead. A script that
    goes on ends when its standard input does, on leaving or when this program dies; until then words come there, and
    when none has come for SILENCE_S a connection was lost.
    """
    pipe, text = subprocess.PIPE, script.read_bytes()
    # The script's text comes first on its standard input.
    bootstrap = _BOOTSTRAP.format(size=len(text), name=script.name)
    words = [python(description), "-c", bootstrap, *arguments]
    running: List["subprocess.Popen[bytes]"] = []
    with Heartbeat() as heart:

        def begin(host: str) -> Answer:
            line = argv(description, host, words)
            try:
                # A session of its own: Ctrl-C is for this program, which then ends what it holds.
                process = subprocess.Popen(
                    line, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
                )
            except OSError as error:
                return {"error": f"{line[0]}: {error.strerror}"}
            running.append(process)
            answer = _first_answer(process, text, limit_s)
            heart.keep(process.stdin)
            return answer

        try:
            hosts = description["hosts"]
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                yield dict(zip(hosts, pool.map(begin, hosts)))
        finally:
            for process in running:
                heart.close(process.stdin)
            for process in running:
                try:
                    process.wait(limit_s)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                process.stdout.close()
                process.stderr.close()


def _first_answer(process: "subprocess.Popen[bytes]", text: bytes, limit_s: float) -> Answer:
    """Give the script's text, and wait for an answer; a login shell may greet on standard output before it."""
    late, printed = threading.Event(), b""
    timer = threading.Timer(limit_s, lambda: (late.set(), process.kill()))
    timer.daemon = True  # a signal that comes while it starts would wait for its end
    try:
        timer.start()
        with suppress(BrokenPipeError):
            process.stdin.write(text)
            process.stdin.flush()
        for printed in process.stdout:
            with suppress(ValueError):
                answer = json.loads(printed)
                if isinstance(answer, dict):
                    return answer
        complaint = process.stderr.read()
    finally:
        timer.cancel()
    if late.is_set():
        return {"error": f"no answer within {limit_s:.0f} s"}
    reason = _last_line(complaint) or f"not an answer: {_last_line(printed) or 'nothing'}"
    return {"error": reason[:200]}


def _last_line(output: bytes) -> str:
    return "".join(output.decode(errors="replace").strip().splitlines()[-1:])


class Heartbeat:
    """Words to programs elsewhere, regularly while the block lasts; all methods may be called by several threads."""

    def __init__(self) -> None:
        self._lines: Set[IO[bytes]] = set()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def keep(self, line: IO[bytes]) -> None:
        """Say a word on this standard input from now on."""
        os.set_blocking(line.fileno(), False)  # who does not read must not keep the others waiting
        with self._lock:
            self._lines.add(line)

    def close(self, line: IO[bytes]) -> None:
        """Close a standard input, kept or not: its program is to end now."""
        with self._lock:
            self._lines.discard(line)
        with suppress(OSError):  # a word that could not be said any more
            line.close()

    def beat(self) -> None:
        """Say a word on all lines."""
        with self._lock:
            for line in self._lines:
                with suppress(OSError):  # who has ended, or does not read
                    os.write(line.fileno(), b"\n")

    def _live(self) -> None:
        while not self._over.wait(_BEAT_S):
            self.beat()
