"""Programs on the hosts of a cluster, started by ssh or, inside an allocation, by Slurm's srun.

Nothing is installed there: scripts of runners/probes travel on standard input.
"""

import json
import shlex
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from runners.record import FalloffError
from runners.testbeds import heartbeat

_SECONDS_TO_CONNECT = 10
_AT_ONCE = 32  # an ssh server takes only so many unauthenticated connections, a controller only so many steps

# Its words come after it as arguments, so that no data becomes part of a shell's script. A login shell, because that
# is where module systems define `module`.
_WITH_MODULES = 'n=$1; shift; module load "${@:1:n}" >&2 || exit 1; shift "$n"; exec "$@"'

# Reads a script of so many bytes from standard input and leaves what follows to the script.
_BOOTSTRAP = "import sys; exec(compile(sys.stdin.buffer.read({size}), {name!r}, 'exec'))"


@dataclass(frozen=True)
class Cluster:
    """How programs get to the hosts of a cluster: `launcher` is `ssh` or `slurm`, `python` the interpreter there,
    `modules` are loaded first, and `ssh_config` is a file for ssh in place of the user's own, or empty.

    With `here` for its launcher it is this machine by any name.
    """

    launcher: str
    hosts: Tuple[str, ...]
    python: str = "python3"
    modules: Tuple[str, ...] = ()
    ssh_config: str = ""


HERE = Cluster("here", ("this machine",), sys.executable)


def cluster(description: Mapping[str, Any]) -> Cluster:
    """The cluster of a description of data/testbeds that `cluster_description.complete` has checked.

    Under Slurm only an allocation gives the hosts; what runs inside one adds them to the description.
    Raises FalloffError when they are not there.
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
        ssh_config=str(Path(config).expanduser()) if config else "",
    )


def ssh(cluster: Cluster) -> List[str]:
    """ssh with options under which it never asks, and notices a host that is gone; known hosts are respected."""
    config = ["-F", cluster.ssh_config] if cluster.ssh_config else []
    options = (
        "BatchMode=yes", f"ConnectTimeout={_SECONDS_TO_CONNECT}", "ServerAliveInterval=5", "ServerAliveCountMax=3",
        "LogLevel=ERROR",
    )  # fmt: skip
    return ["ssh", *config, *(word for option in options for word in ("-o", option))]


def argv(cluster: Cluster, host: str, words: Sequence[str]) -> List[str]:
    """The command line, for this machine, of a program on a host, with the cluster's modules loaded there."""
    program = with_modules(cluster.modules, words)
    if cluster.launcher == "here":
        return program
    if cluster.launcher == "slurm":
        # Beside other steps of the job, whose cores and memory it shares: a server and its client are two.
        beside = ["--overlap", "--mem=0", "--cpu-bind=none"]
        step = ["--quiet", "--nodes=1", "--ntasks=1", f"--nodelist={host}", *beside]
        return ["srun", *step, "--", *program]
    # ssh joins its words and the shell of the user there splits them again: each is quoted for it.
    return [*ssh(cluster), "--", host, shlex.join(program)]


def with_modules(modules: Sequence[str], words: Sequence[str]) -> List[str]:
    """A command line that loads environment modules first; the words themselves without any."""
    if not modules:
        return list(words)
    return ["bash", "-lc", _WITH_MODULES, "bash", str(len(modules)), *modules, *words]


def script_argv(cluster: Cluster, host: str, script: Path, arguments: Sequence[str] = ()) -> List[str]:
    """The command line of a script on a host, which takes the script's text first from its standard input."""
    bootstrap = _BOOTSTRAP.format(size=script.stat().st_size, name=script.name)
    return argv(cluster, host, [cluster.python, "-c", bootstrap, *arguments])


def ask(
    cluster: Cluster, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> Dict[str, Dict[str, Any]]:
    """Run a script of runners/probes on all hosts side by side, and return by host what it prints: a JSON object on
    its last line.

    A host that does not answer so within `limit_s` seconds, or fails, has {"error": the reason} instead.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda host: _ask(cluster, host, script, arguments, limit_s), cluster.hosts)
        return dict(zip(cluster.hosts, answers))


def _ask(cluster: Cluster, host: str, script: Path, arguments: Sequence[str], limit_s: float) -> Dict[str, Any]:
    words = script_argv(cluster, host, script, arguments)
    try:
        done = subprocess.run(words, input=script.read_bytes(), capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"error": _too_late(limit_s)}
    except OSError as error:
        return {"error": f"{words[0]}: {error.strerror}"}
    if done.returncode:
        return {"error": _complaint(done.stderr, done.stdout)}
    said = done.stdout.decode(errors="replace").strip().splitlines()
    return answer("".join(said[-1:]))


def answer(line: str) -> Dict[str, Any]:
    """The object that a script printed on a line; {"error": ...} when it is none."""
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    return said if isinstance(said, dict) else {"error": f"not an answer: {line[:200] or 'nothing'}"}


@contextmanager
def held(
    cluster: Cluster, script: Path, arguments: Mapping[str, Sequence[str]], limit_s: float = 30.0
) -> Iterator[Dict[str, Dict[str, Any]]]:
    """Keep a script of runners/probes running on the hosts for which there are `arguments`; gives what each prints
    first, by host, as `ask` does.

    The script runs until its standard input ends, on leaving or when this program dies, or until it has read nothing
    there for as many seconds as its first argument says: a connection was lost.
    """
    silence = f"{heartbeat.SILENCE_S:g}"
    running = {host: _start(cluster, host, script, [silence, *arguments[host]]) for host in arguments}
    with heartbeat.beating() as heart:

        def begin(process: "subprocess.Popen[bytes]") -> Dict[str, Any]:
            said = _first_answer(process, script, limit_s)
            heart.keep(process.stdin)
            return said

        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                answers = pool.map(begin, running.values())
                yield dict(zip(running, answers))
        finally:
            for process in running.values():
                heart.close(process.stdin)
            for process in running.values():
                _end(process, limit_s)


def _start(cluster: Cluster, host: str, script: Path, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    words = script_argv(cluster, host, script, arguments)
    # A session of its own: Ctrl-C is for this program, which then ends what it holds.
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)


def _first_answer(process: "subprocess.Popen[bytes]", script: Path, limit_s: float) -> Dict[str, Any]:
    late = threading.Event()
    timer = threading.Timer(limit_s, lambda: (late.set(), process.kill()))
    timer.start()
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(script.read_bytes())
            process.stdin.flush()
        line = process.stdout.readline()
        if line:
            return answer(line.decode(errors="replace"))
        return {"error": _too_late(limit_s) if late.is_set() else _complaint(process.stderr.read())}
    finally:
        timer.cancel()


def _end(process: "subprocess.Popen[bytes]", limit_s: float) -> None:
    """Wait for a program whose standard input is closed; one that does not end then is killed."""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    process.stderr.close()


def _too_late(limit_s: float) -> str:
    return f"no answer within {limit_s:.0f} s"


def _complaint(*outputs: bytes) -> str:
    """The last line of the first output that has any."""
    texts = (output.decode(errors="replace").strip() for output in outputs)
    said = next(filter(None, texts), "nothing was said")
    return said.splitlines()[-1][:200]
