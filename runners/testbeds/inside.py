"""The process in which rootless.py has its testbed: python -m runners.testbeds.inside SOCKET FOLDER

It is the first of a PID namespace, and its mounts are its own: when it ends, so does all that it started and made.
"""

import os
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from runners.record import FalloffError
from runners.testbeds import available, emulated, lease

# Every machine has this folder, and no program lies in it that a mount over it would hide.
_STATES = Path("/dev/shm")


def main() -> None:
    """Answer questions, one after the other, until the owner closes the socket or is gone."""
    socket, folder = sys.argv[1:]
    os.chdir(folder)  # the owner's: paths of tools may be relative to it
    connection = Connection(int(socket))
    questions: "SimpleQueue[Any]" = SimpleQueue()
    with lease.sigterm_exits():
        threading.Thread(target=_listen, args=(connection, questions), daemon=True).start()
        subprocess.run(["mount", "-t", "tmpfs", "none", str(_STATES)], check=True)
        method, arguments = questions.get()
        if method == "unavailable":
            connection.send(available.unavailable(*arguments))
            return
        try:
            with emulated.up(*arguments, _STATES) as testbed:
                connection.send(None)
                while True:
                    method, arguments = questions.get()
                    connection.send(getattr(testbed, method)(*arguments))
        except FalloffError as error:
            connection.send(error)


def _listen(connection: Connection, questions: "SimpleQueue[Any]") -> None:
    """Pass on what is asked; when nobody can ask any more, end a trial that still runs too."""
    try:
        while True:
            questions.put(connection.recv())
    except (EOFError, ConnectionError):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)


if __name__ == "__main__":
    main()
