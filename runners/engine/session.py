"""A session of a campaign: open its testbed and run the missing trials.

Emulated nodes need root. For other users, the session runs in a process that is root of a user
namespace. It must be a separate process, because a process with several threads, such as a
notebook's, cannot enter a user namespace, and only from inside can its network namespaces be
entered. That process pickles its events for this one, and ends when nobody reads them any more.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Callable, Optional

from runners.engine import campaign, two_way
from runners.engine.campaign import Event, Listener
from runners.records import lock
from runners.records.journal import Folder
from runners.records.plan import Plan
from runners.records.record import Description, FalloffError
from runners.testbeds import lease

Decided = Callable[[Folder], bool]

_ROOT = Path(__file__).resolve().parents[2]
# In a PID namespace everything that the session started ends with it; its mounts and interfaces are
# private, too.
_NAMESPACES = ("--user", "--map-root-user", "--net", "--mount", "--ipc", "--pid")
UNSHARE = ("unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc")
# Every machine has this folder, and it contains no program that a mount over it would hide.
_STATES = "/dev/shm"
_PATIENCE_S = 30.0


def testbed_module(description: Description) -> Any:
    """The module for this kind of testbed; raises FalloffError if there is none."""
    try:
        return import_module(f"runners.testbeds.{description['kind']}")
    except (KeyError, ModuleNotFoundError):
        raise FalloffError(f"testbed {description.get('name')!r} needs a known 'kind'") from None


def tools_of(plan: Plan) -> list[str]:
    """The names of the tools that a plan's commands start, or of their substitutes on its
    testbed."""
    stands_for = testbed_module(plan.testbed).STANDS_FOR
    return sorted(
        {stands_for.get(command.argv[0], command.argv[0]) for command in campaign.commands_of(plan)}
    )


def run(
    plan: Plan,
    folder: Folder,
    listen: Listener = campaign.ignore,
    decided: Optional[Decided] = None,
) -> None:
    """Run the missing trials of a plan in its folder, on its testbed. `decided` is as for
    `campaign.run`; it must be a module's function under its own name.

    While another run measures on this machine, or on these hosts of a cluster, it waits; a
    simulation waits only for one of the same campaign. Raises FalloffError if the testbed is not
    available here, or lacks a tool.
    """

    def wait(message: str) -> None:
        listen(Event("waiting", message=message))

    place = str(folder.path.absolute())
    with lock.measuring(plan.testbed, f"campaign {plan.name}", wait, place) as had_to_wait:
        if not (had_to_wait and campaign.is_finished(plan, folder)):  # the first run did it
            _run(plan, folder, listen, decided)


def _run(plan: Plan, folder: Folder, listen: Listener, decided: Optional[Decided]) -> None:
    if testbed_module(plan.testbed).NEEDS_ROOT and os.geteuid() != 0:
        _run_in_user_namespace(plan, folder, listen, decided)
    else:
        with opened(plan.testbed, plan) as testbed:
            found = exchanges(testbed, listen)
            campaign.run(plan, testbed, folder, listen, decided, session=found)


@contextmanager
def opened(description: Description, plan: Plan) -> Iterator[Any]:
    """The testbed of a description, opened for a plan; raises FalloffError if nodes of a cluster
    lack a tool."""
    module = testbed_module(description)
    with module.open_testbed(description, plan.interconnects) as testbed:
        if not module.IS_HERE:
            testbed.require(tools_of(plan))
        yield testbed


def exchanges(testbed: Any, listen: Listener) -> dict[str, Any]:
    """What a session's provenance says of exchanges both ways: nothing where the nodes are
    emulated or simulated, whose campaigns state how they send."""
    if testbed.evidence != "measured":
        return {}

    def tell(sentence: str) -> None:
        listen(Event("message", message=sentence))

    return {"exchanges": two_way.measured(testbed, tell)}


def _run_in_user_namespace(
    plan: Plan, folder: Folder, listen: Listener, decided: Optional[Decided]
) -> None:
    folder.create_or_check(plan)
    with tempfile.TemporaryFile() as complaints:
        process: Any = subprocess.Popen(
            [*UNSHARE, sys.executable, "-m", "runners.engine.session"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,  # stays open as long as this process lives
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,  # Ctrl-C goes to this process, which then ends the session
        )
        try:
            with suppress(BrokenPipeError):  # it could not start; its last output says why
                asked = decided if plan.stopping.looks else None
                pickle.dump((folder, os.getcwd(), asked), process.stdin)
                process.stdin.flush()
            with suppress(EOFError, pickle.UnpicklingError):  # the latter if it was killed
                while True:
                    heard = pickle.load(process.stdout)
                    if isinstance(heard, FalloffError):
                        raise heard
                    listen(heard)
            if process.wait():
                raise FalloffError(f"the session has ended: {_last_line(complaints)}")
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else "it was killed"
    remedy = (
        ". Where only root may make one, run it with sudo" if last.startswith("unshare") else ""
    )
    return last + remedy


def main() -> int:
    """Inside the user namespace: run the missing trials of the campaign that the owner names on
    standard input."""
    folder, owners, decided = pickle.load(sys.stdin.buffer)
    os.chdir(owners)  # tools' paths may be relative to it
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output is not an event

    def tell(event: object) -> None:
        pickle.dump(event, events)
        events.flush()

    with lease.signals_exit():
        threading.Thread(target=_end_with_owner, args=[threading.get_ident()], daemon=True).start()
        subprocess.run(["mount", "-t", "tmpfs", "none", _STATES], check=True)
        try:
            _run(folder.plan(), folder, tell, decided)
        except (FalloffError, OSError) as error:  # such as a full disk
            tell(FalloffError(str(error)))
    return 0


def _end_with_owner(main_thread: int) -> None:
    """When the owner is gone, nothing holds the other end of standard input; then end a running
    trial, too."""
    while os.read(0, 1):
        pass
    signal.pthread_kill(main_thread, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
