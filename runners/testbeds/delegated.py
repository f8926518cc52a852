"""The cgroup that this process is in, where somebody has given it to the user to divide."""

from contextlib import suppress
from pathlib import Path

# The group below a delegated one for the processes that were in it.
_SETTLED = "falloff-callers"


def own(tree: Path, controller: str, listing: str) -> Path:
    """The group in a mounted tree of the process whose /proc/PID/cgroup is `listing`; of one that was settled, the
    group in which it was.

    `controller` is one of those that the tree holds, empty for version 2.
    """
    rows = (line.split(":", 2) for line in listing.splitlines())
    group = next((path for _, controllers, path in rows if controller in controllers.split(",")), "")
    folder = tree / group.lstrip("/")
    return folder.parent if folder.name == _SETTLED else folder


def settle(group: Path) -> None:
    """Make a group of version 2 fit to be divided: the processes in it move to one of their own below it.

    Only a group without processes of its own may limit others. The new one stays: it ends with `group`.
    """
    settled = group / _SETTLED
    settled.mkdir(exist_ok=True)
    for process in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):  # it has just ended
            (settled / "cgroup.procs").write_text(process)
