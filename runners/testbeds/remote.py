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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

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


@dataclass(frozen=True)
class Cluster:
    """How programs get to the hosts: `launcher` is `ssh` or `slurm`.

    `python` is the interpreter there, `modules` are loaded first, `ssh_config` is a file for ssh or empty.
    """

    launcher: str
    hosts: Tuple[str, ...]
    python: str = "python3"
    modules: Tuple[str, ...] = ()
    ssh_config: str = ""


def cluster(description: Mapping[str, Any]) -> Cluster:
    """The cluster of a complete description; under Slurm, what runs in the allocation adds its hosts.

    Raises FalloffError when there are no hosts.
    """
    if not description.get("hosts"):
        raise FalloffError(
            f"testbed {description['name']} has hosts only inside an allocation of Slurm: run with --submit"
        )
    config = description.get("ssh", {}).get("config", "")
    return Cluster(
        launcher=description["launcher"],
        hosts=tuple(description["hosts"]),
        python=description.get("python", "python3"),
        modules=tuple(description.get("modules", ())),
        ssh_config=os.path.expanduser(config),
    )


def ssh(cluster: Cluster) -> List[str]:
    """ssh with our options; known hosts are respected."""
    config = ["-F", cluster.ssh_config] if cluster.ssh_config else []
    return ["ssh", *config, *(word for option in _SSH_OPTIONS for word in ("-o", option))]


def argv(cluster: Cluster, host: str, words: Sequence[str]) -> List[str]:
    """The command line, for this machine, of a program on a host, with the cluster's modules loaded there."""
    program = with_modules(cluster.modules, words)
    if cluster.launcher == "slurm":
        # Beside other steps of the job, whose cores and memory it shares: a server and its client are two.
        beside = ["--overlap", "--mem=0", "--cpu-bind=none"]
        one = ["--quiet", "--nodes=1", "--ntasks=1", f"--nodelist={host}"]
        return ["srun", *one, *beside, "--", *program]
    # ssh joins its words and the shell of the user there splits them again: each is quoted for it.
    return [*ssh(cluster), "--", host, shlex.join(program)]


def with_modules(modules: Sequence[str], words: Sequence[str]) -> List[str]:
    """A command line that loads environment modules first; the words themselves without any."""
    if not modules:
        return list(words)
    return ["bash", "-lc", _WITH_MODULES, "bash", str(len(modules)), *modules, *words]


def ask(
    cluster: Cluster, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> Dict[str, Dict[str, Any]]:
    """Run a script of runners/probes on all hosts; by host the JSON object on the last line that it prints.

    A host that does not answer so within `limit_s` seconds, or fails, has {"error": the reason} instead.
    """

    def answer(host: str) -> Dict[str, Any]:
        words = script_argv(cluster, host, script, arguments)
        try:
            done = subprocess.run(
                words, input=script.read_bytes(), capture_output=True, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            return _too_late(limit_s)
        except OSError as error:
            return {"error": f"{words[0]}: {error.strerror}"}
        if done.returncode:
            return _complaint(done.stderr, done.stdout)
        return _answer(_last_line(done.stdout))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(cluster.hosts, pool.map(answer, cluster.hosts)))


@contextmanager
def held(
    cluster: Cluster, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> Iterator[Dict[str, Dict[str, Any]]]:
    """Keep a script of runners/probes running on all hosts; gives by host what each prints first, as `ask` does.

    The script runs until its standard input ends, on leaving or when this program dies, or until it has read nothing
    there for as many seconds as its first argument says: a connection was lost.
    """
    pipe, silence = subprocess.PIPE, f"{SILENCE_S:g}"
    running = []
    for host in cluster.hosts:
        words = script_argv(cluster, host, script, [silence, *arguments])
        # A session of its own: Ctrl-C is for this program, which then ends what it holds.
        running.append(
            subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        )
    with Heartbeat() as heart:

        def begin(process: "subprocess.Popen[bytes]") -> Dict[str, Any]:
            answer = _first_answer(process, script, limit_s)
            heart.keep(process.stdin)
            return answer

        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                yield dict(zip(cluster.hosts, pool.map(begin, running)))
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


def script_argv(
    cluster: Cluster, host: str, script: Path, arguments: Sequence[str] = ()
) -> List[str]:
    """The command line of a script on a host, which takes the script's text first from its standard input."""
    bootstrap = _BOOTSTRAP.format(size=script.stat().st_size, name=script.name)
    return argv(cluster, host, [cluster.python, "-c", bootstrap, *arguments])


def _first_answer(
    process: "subprocess.Popen[bytes]", script: Path, limit_s: float
) -> Dict[str, Any]:
    late = threading.Event()
    timer = threading.Timer(limit_s, lambda: (late.set(), process.kill()))
    timer.start()
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(script.read_bytes())
            process.stdin.flush()
        line = process.stdout.readline()
        if line:
            return _answer(line.decode(errors="replace"))
        return _too_late(limit_s) if late.is_set() else _complaint(process.stderr.read())
    finally:
        timer.cancel()


def _answer(line: str) -> Dict[str, Any]:
    with suppress(ValueError):
        answer = json.loads(line)
        if isinstance(answer, dict):
            return answer
    return {"error": f"not an answer: {line[:200] or 'nothing'}"}


def _too_late(limit_s: float) -> Dict[str, Any]:
    return {"error": f"no answer within {limit_s:.0f} s"}


def _complaint(*outputs: bytes) -> Dict[str, Any]:
    return {"error": next(filter(None, map(_last_line, outputs)), "nothing was said")[:200]}


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
