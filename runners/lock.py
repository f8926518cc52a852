"""Who may write and who may measure: one run a campaign's folder, one measuring run a machine.

Both are flock(2) on a file. The kernel lets go of it however its owner ends, also by kill -9. The file itself stays; it says
in a line who had it last. A file system that knows no flock (Lustre without `-o flock`) excludes nobody.

FALLOFF_LOCKS   another folder than /dev/shm for the machine's lock; runs that do not share it do not see each other
"""

import errno
import fcntl
import hashlib
import os
import platform
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

from runners.record import FalloffError

_UNKNOWN_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_LONGEST = 200  # characters of a line that anybody may have written
_PATIENCE_S = 1.0


class Taken(FalloffError):
    """Somebody else has the lock; the message is the line that they left."""


@contextmanager
def held(file: Path, line: str, mode: int = 0o644) -> Iterator[None]:
    """Hold the lock of a file, and leave a line in it that says who does; raises Taken.

    `mode` is the file's, whatever the umask, when it is made.
    """
    descriptor = _opened(file, mode)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(_read(descriptor)) from None
        except OSError as error:
            if error.errno not in _UNKNOWN_HERE:
                raise
        with suppress(OSError):  # another user's file, or a full disk: the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, line.encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def measuring(testbed: Mapping[str, Any], what: str, wait: Callable[[str], None]) -> Iterator[bool]:
    """Hold what a testbed measures on: this machine, or the hosts of a cluster; whether it had to wait for that.

    `what` says in a few words what is measured. While another run measures, `wait(message)` is called once.
    """
    file = _folder() / f"falloff-measuring{_hosts(testbed)}"
    line = f"{what}, process {os.getpid()} since {_now()}"
    had_to_wait, is_held = False, False
    with ExitStack() as stack:
        while not is_held:
            try:
                stack.enter_context(held(file, line, 0o666))  # the next user leaves a line, too
                is_held = True
            except Taken as taken:
                if not had_to_wait:
                    wait(f"{taken} is at work here: waiting for its end (Ctrl-C gives up)")
                had_to_wait = True
                time.sleep(_PATIENCE_S)
        yield had_to_wait


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only run that writes a campaign's folder, which is made; raises FalloffError that names the other run."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with held(folder / "lock", f"a run on {platform.node()} since {_now()}"):
            yield
    except Taken as taken:
        remedy = "wait for its end, or end it; nothing was changed"
        raise FalloffError(f"{folder} is being written by {taken}: {remedy}") from None


def _opened(file: Path, mode: int) -> int:
    """A descriptor of the file; one that may only be read can be locked too."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(FileExistsError):
        descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        os.fchmod(descriptor, mode)
        return descriptor
    try:
        return os.open(file, flags | os.O_RDWR)
    except PermissionError:
        return os.open(file, flags | os.O_RDONLY)


def _read(descriptor: int) -> str:
    text = os.pread(descriptor, 4 * _LONGEST, 0).decode(errors="replace")
    line = "".join(letter for letter in text if letter.isprintable())[:_LONGEST]
    return line or "another run"


def _hosts(testbed: Mapping[str, Any]) -> str:
    """What tells a cluster's lock from this machine's: a digest of its hosts, else of its name."""
    if testbed["kind"] != "cluster":
        return ""
    hosts = " ".join(sorted(testbed.get("hosts", [testbed["name"]])))
    return f"-{hashlib.sha256(hosts.encode()).hexdigest()[:16]}"


def _folder() -> Path:
    named = os.environ.get("FALLOFF_LOCKS")
    shared = ("/dev/shm", "/tmp")
    usable = [folder for folder in shared if os.access(folder, os.W_OK | os.X_OK)]
    return Path(named or next(iter(usable), tempfile.gettempdir()))


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M")
