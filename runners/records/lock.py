"""Locks: one run writes to a campaign's folder, one run measures on a machine.

A folder's lock is flock(2) on a file. The file stays, with a line that names its last holder. On a
file system without flock (Lustre without `-o flock`) it excludes nobody. The machine's lock is the
name of an abstract socket, unix(7): all users share it, no file can block it, and the kernel knows
whose process holds it. The kernel releases both locks however their owner ends, even after kill -9.

FALLOFF_LOCKS   a folder with files for the machine's lock instead, as for containers, which have
                their own sockets; runs that do not share it do not see each other
"""

import errno
import fcntl
import hashlib
import os
import platform
import pwd
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Callable

from runners.records.record import Description, FalloffError

_UNKNOWN_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_LONGEST = 200  # characters of a line from another process
_PATIENCE_S = 1.0
_ANSWER_S = 1.0


class LockBusy(FalloffError):
    """Another process holds the lock; the message is the line that it left.

    `is_ours`: a process of this user holds it.
    """

    is_ours = True


@contextmanager
def held(file: Path, line: str, mode: int = 0o644) -> Iterator[None]:
    """Hold the lock of a file, and leave a line in it that names the holder; raises LockBusy.

    `mode` is the mode of a new file, whatever the umask.
    """
    descriptor = _opened(file, mode)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockBusy(_line(os.pread(descriptor, 4 * _LONGEST, 0))) from None
        except OSError as error:
            if error.errno not in _UNKNOWN_HERE:
                raise
        with suppress(OSError):  # another user's file, or a full disk: the lock holds anyway
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, line.encode(), 0)
        yield
    finally:
        # A child between fork and exec has the descriptor, and with it the lock, for a moment
        # longer.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


@contextmanager
def measuring(
    testbed: Description, what: str, wait: Callable[[str], None], folder: str = ""
) -> Iterator[bool]:
    """Hold the lock of what a testbed measures on: this machine, the hosts of a cluster, or of a
    simulation, which disturbs nobody and is disturbed by nobody, only the campaign's `folder`.
    Yields whether it had to wait.

    `what` names the measurement in a few words. If another run measures, `wait(message)` is called
    once.
    """
    name = f"falloff-measuring{_suffix(testbed, folder)}"
    line = f"{what}, process {os.getpid()} since {_now()}"
    had_to_wait, is_held = False, False
    with ExitStack() as stack:
        while not is_held:
            try:
                stack.enter_context(_of_machine(name, line))
                is_held = True
            except LockBusy as taken:
                if not had_to_wait:
                    others = "; FALLOFF_LOCKS=FOLDER of your own ignores it"
                    way_out = f"Ctrl-C gives up{'' if taken.is_ours else others}"
                    wait(f"{taken} is measuring here: waiting for it to end ({way_out})")
                had_to_wait = True
                time.sleep(_PATIENCE_S)
        yield had_to_wait


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only run that writes to a campaign's folder, which is created; raises FalloffError
    naming the other run."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with held(folder / "lock", f"a run on {platform.node()} since {_now()}"):
            yield
    except LockBusy as taken:
        raise FalloffError(
            f"{folder} is being written by {taken}: "
            "wait for its end, or end it; nothing was changed"
        ) from None


@contextmanager
def _of_machine(name: str, line: str) -> Iterator[None]:
    """Hold a lock of this machine; raises LockBusy, or FalloffError if FALLOFF_LOCKS is not a
    usable folder."""
    folder = os.environ.get("FALLOFF_LOCKS")
    # 0o666, so that the next user can leave a line, too.
    lock = held(Path(folder) / name, line, 0o666) if folder else _bound(f"\0{name}", line)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock)
        except OSError as error:
            raise FalloffError(
                f"{error.filename or name}: {error.strerror}; "
                "name a folder of your own by FALLOFF_LOCKS, or unset it"
            ) from None
        yield


@contextmanager
def _bound(name: str, line: str) -> Iterator[None]:
    """Bind an abstract socket of that name, and send the line to every process that asks; raises
    LockBusy."""
    with socket.socket(socket.AF_UNIX) as ours:
        try:
            ours.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise _taken(name) from None
        ours.listen()
        telling = threading.Thread(target=_tell, args=(ours, line), daemon=True)
        telling.start()
        try:
            yield
        finally:
            ours.shutdown(socket.SHUT_RDWR)  # wakes the thread
            telling.join()


def _tell(ours: socket.socket, line: str) -> None:
    with suppress(OSError):  # the lock was released
        while True:
            asking, _ = ours.accept()
            with asking, suppress(OSError):  # the process that asked has gone
                asking.sendall(line.encode())


def _taken(name: str) -> LockBusy:
    """The holder of a socket: its own line, and the owner of its process according to the
    kernel."""
    line, owner = b"", None
    with (
        socket.socket(socket.AF_UNIX) as asking,
        suppress(OSError),
    ):  # it does not listen, or has just ended
        asking.settimeout(_ANSWER_S)
        asking.connect(name)
        size = struct.calcsize("3i")
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        process, owner, _ = struct.unpack("3i", credentials)
        line = asking.recv(4 * _LONGEST)
    if owner in (None, os.getuid()):
        taken = LockBusy(_line(line))
    else:
        taken = LockBusy(f"{_line(line)} (process {process} of user {_user(owner)})")
    taken.is_ours = owner == os.getuid()
    return taken


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a user of a container, or a removed one
        return str(number)


def _opened(file: Path, mode: int) -> int:
    """A descriptor of the file; a read-only file can be locked, too."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(FileExistsError):
        descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        os.fchmod(descriptor, mode)
        return descriptor
    try:
        return os.open(file, flags | os.O_RDWR)
    except PermissionError:
        return os.open(file, flags | os.O_RDONLY)


def _line(content: bytes) -> str:
    text = content.decode(errors="replace")
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST] or "another run"


def _suffix(testbed: Description, folder: str = "") -> str:
    """The suffix that distinguishes other locks from this machine's: a digest of a cluster's hosts,
    else of its name, or of a simulation's folder."""
    if testbed["kind"] == "cluster":
        shared = " ".join(sorted(testbed.get("hosts", [testbed["name"]])))
    elif testbed["kind"] == "simulated":
        shared = folder
    else:
        return ""
    return f"-{hashlib.sha256(shared.encode()).hexdigest()[:16]}"


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M")
