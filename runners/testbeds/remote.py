"""Programs on the hosts of a cluster, started by ssh or, inside an allocation, by Slurm's srun.

Nothing is installed there: scripts of runners/probes travel on standard input. If a cable is cut, a
host that waits for the other side's next word never learns of it. So we send words regularly, and a
program ends after a long silence.
"""

import json
import os
import shlex
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from runners.records.record import Description, FalloffError

# Longer than ssh needs to notice a lost host, and than any pause of a busy machine.
SILENCE_S = 60.0
_BEAT_S = 5.0
_AT_ONCE = 32  # an ssh server limits unauthenticated connections, a controller limits steps
_SSH_OPTIONS = (
    "BatchMode=yes",  # never ask
    "ConnectTimeout=10",
    "ServerAliveInterval=5",  # notice a lost host
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
)

# Its words follow as arguments, so that no data becomes part of a shell script. It is a login
# shell, because module systems define `module` there.
_WITH_MODULES = 'n=$1; shift; module load "${@:1:n}" >&2 || exit 1; shift "$n"; exec "$@"'

# Reads a script of a given number of bytes from standard input, and leaves the rest of the input to
# the script.
_BOOTSTRAP = "import sys; exec(compile(sys.stdin.buffer.read({size}), {name!r}, 'exec'))"


Answer = dict  # a script's output, or {"error": the reason why there is none}


def require_hosts(description: Description) -> None:
    """Raise FalloffError if there are no hosts. Under Slurm, the program in the allocation adds
    them."""
    if not description.get("hosts"):
        where = "only inside an allocation of Slurm: run with --submit"
        raise FalloffError(f"testbed {description['name']} has hosts {where}")


def ssh(description: Description) -> list[str]:
    """ssh with our options; it respects known hosts."""
    file = description.get("ssh", {}).get("config")
    config = ["-F", os.path.expanduser(file)] if file else []
    return ["ssh", *config, *(word for option in _SSH_OPTIONS for word in ("-o", option))]


def python(description: Description) -> str:
    """The interpreter on the hosts."""
    return description.get("python", "python3")


def argv(description: Description, host: str, words: Sequence[str]) -> list[str]:
    """This machine's command line for a program on a host, with the cluster's modules loaded
    there."""
    program = with_modules(description, words)
    if description["launcher"] == "slurm":
        # It shares cores and memory with other steps of the job: a server and its client are two
        # steps.
        beside = ["--overlap", "--mem=0", "--cpu-bind=none"]
        task = ["--quiet", "--nodes=1", "--ntasks=1", f"--nodelist={host}"]
        return ["srun", *task, *beside, "--", *program]
    # ssh joins its words and the user's shell there splits them again, so each word is quoted.
    return [*ssh(description), "--", host, shlex.join(program)]


def with_modules(description: Description, words: Sequence[str]) -> list[str]:
    """A command line that loads the cluster's environment modules first; the words unchanged if
    there are none."""
    modules = description.get("modules")
    if not modules:
        return list(words)
    return ["bash", "-lc", _WITH_MODULES, "bash", str(len(modules)), *modules, *words]


def ask(
    description: Description, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> dict[str, Answer]:
    """Run a script of runners/probes to its end on all hosts; returns each host's answer as `held`
    does."""
    with held(description, script, arguments, limit_s) as answers:
        return answers


@contextmanager
def held(
    description: Description, script: Path, arguments: Sequence[str] = (), limit_s: float = 30.0
) -> Iterator[dict[str, Answer]]:
    """Keep a script of runners/probes running on all hosts; yields by host the first JSON object
    that it prints on a line.

    A host that does not answer within `limit_s` seconds, or fails, has {"error": the reason}
    instead. A script that keeps running ends when its standard input does, on leaving or if this
    program dies. Until then words arrive there; after SILENCE_S without one the connection counts
    as lost.
    """
    pipe, text = subprocess.PIPE, script.read_bytes()
    # The script's text is the first part of its standard input.
    bootstrap = _BOOTSTRAP.format(size=len(text), name=script.name)
    words = [python(description), "-c", bootstrap, *arguments]
    running: list[Any] = []
    with Heartbeat() as heart:

        def begin(host: str) -> Answer:
            line = argv(description, host, words)
            try:
                # In its own session, so that Ctrl-C goes to this program, which then ends what it
                # holds.
                process: Any = subprocess.Popen(
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


def _first_answer(process: Any, text: bytes, limit_s: float) -> Answer:
    """Send the script's text, and wait for an answer; a login shell may print a greeting first."""
    late, printed = threading.Event(), b""

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(limit_s, give_up)
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
    """Send words to programs elsewhere, regularly while the block lasts. Several threads may call
    all methods."""

    def __init__(self) -> None:
        self._lines: set[IO[bytes]] = set()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def keep(self, line: IO[bytes]) -> None:
        """Send words to this standard input from now on."""
        # A program that does not read must not delay the others.
        os.set_blocking(line.fileno(), False)
        with self._lock:
            self._lines.add(line)

    def close(self, line: IO[bytes]) -> None:
        """Close a standard input, kept or not: its program should end now."""
        with self._lock:
            self._lines.discard(line)
        with suppress(OSError):  # a word that could not be sent any more
            line.close()

    def beat(self) -> None:
        """Send a word on all lines."""
        with self._lock:
            for line in self._lines:
                with suppress(OSError):  # a program that has ended, or does not read
                    os.write(line.fileno(), b"\n")

    def _live(self) -> None:
        while not self._over.wait(_BEAT_S):
            self.beat()
