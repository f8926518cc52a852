"""The first process of an emulated node: init.py SHARED KEPT ... gives it file systems of its own,
then only reaps.

It runs in fresh mount and PID namespaces. SHARED is the folder that all nodes see, with `hosts` in
it; KEPT are folders that stay visible although they may be below /tmp. When this process dies, so
does all else on the node.
"""

import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

_SPARE = Path("/mnt")  # where a file system is made ready


def mount(*words: str) -> None:
    """mount(8) with these words; raises CalledProcessError when it fails."""
    subprocess.run(["mount", "--no-mtab", *words], check=True)


def renew(place: str, mode: str, kept: "list[Path]") -> None:
    """An empty file system at `place`, but for the kept folders below it: other nodes do not see
    its files.
    """
    mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", str(_SPARE))
    for folder in kept:
        if Path(place) in folder.parents:
            copy = _SPARE / folder.relative_to(place)
            copy.mkdir(parents=True, exist_ok=True)
            mount("--rbind", str(folder), str(copy))
    mount("--move", str(_SPARE), place)


def main(shared: Path, kept: "list[Path]") -> None:
    """Mount, say `ready`, and wait for ever."""
    mount("-t", "sysfs", "sysfs", "/sys")  # the interfaces of this node, not the machine's
    mount("--bind", str(shared / "hosts"), "/etc/hosts")
    for place, mode in (
        ("/run", "755"),
        ("/tmp", "1777"),
        (pwd.getpwuid(os.getuid()).pw_dir, "700"),
    ):
        renew(place, mode, [shared, *kept])
    Path("/run/sshd").mkdir(mode=0o755)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps orphans by itself
    os.execvp("sleep", ["sleep", "infinity"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
