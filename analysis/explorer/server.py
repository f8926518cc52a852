"""The explorer's server: only on loopback, and only for someone who has the address with its
key."""

import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import panel as pn
from jupyter_core.paths import jupyter_runtime_dir
from panel.io.server import StoppableThread

from analysis.explorer import data
from analysis.explorer.page import document
from runners.records.journal import replacing
from runners.records.record import FalloffError

HOST = "127.0.0.1"
PORT = 8850  # if it is free, so that a bookmark survives a restart
KEY_BYTES = 24
# A fetched page may connect, and reconnect after a laptop slept, for as long as a server can run.
TOKEN_S = 365 * 24 * 3600
UNUSED_S = 300  # seconds that a page is kept after its reader left; its address brings it back
PATIENCE_S = 30  # seconds that a server may take to start

# It is no error if a reader closes the page while it is being sent.
logging.getLogger("asyncio").addFilter(
    lambda record: "WebSocketClosedError" not in record.getMessage()
)


class PageServer(NamedTuple):
    """A server's thread. Anyone with the address can open the page; each tab has its own view."""

    thread: StoppableThread
    address: str


@contextmanager
def redirecting(address: str) -> Iterator[str]:
    """The address of a file that redirects the browser to the page. Only this user can read it,
    whereas every user can read command lines."""
    # A killed explorer's page is overwritten by the next on the same port.
    file = _private_folder() / f"falloff-explorer-{urlsplit(address).port}.html"
    link = f'<meta http-equiv="refresh" content="0;url={address}"><a href="{address}">Explorer</a>'
    _write_private(file, link)
    try:
        yield file.as_uri()
    finally:
        file.unlink(missing_ok=True)


def _write_private(file: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(file, flags, 0o600), "w", encoding="ascii") as made:
        made.write(text)


def stable_key() -> str:
    """This user's key, in a file that nobody else can read. It is the same at every start, so that
    a bookmark survives a restart."""
    folder = _private_folder()
    file = folder / "falloff-explorer.key"
    with suppress(OSError):
        about, key = file.stat(), file.read_text(encoding="ascii", errors="replace")
        is_private = about.st_uid == os.getuid() and not about.st_mode & 0o077
        if is_private and re.fullmatch(r"[\w-]{32}", key):
            return key
    key = secrets.token_urlsafe(KEY_BYTES)
    with replacing(file) as part:
        _write_private(part, key)
    return key


def _private_folder() -> Path:
    folder = Path(jupyter_runtime_dir())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _free_port(port: int | None) -> int:
    """This port, or any free one for 0; for None PORT, or any free one while that is taken. Raises
    FalloffError if the port that was asked for is taken."""
    for wanted in (PORT, 0) if port is None else (port,):
        with socket.socket() as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trying.bind((HOST, wanted))
                return trying.getsockname()[1]
            except (OSError, OverflowError) as error:  # in use, reserved for root, or not a port
                reason = getattr(error, "strerror", None) or error
    raise FalloffError(f"port {wanted}: {reason}; choose another, or any free one with --port 0")


@contextmanager
def serve(folder: Path | None, port: int | None = 0) -> Iterator[PageServer]:
    """A server in its own thread on a port, any free one for 0, PORT if that is free for None; it
    answers from the beginning of the block to its end.

    Raises FalloffError if the port is taken, or there is no such folder.
    """
    data.experiments(folder)  # refuses a missing folder
    port, key = _free_port(port), stable_key()
    thread = pn.serve(
        lambda: document(folder),
        port=port,
        address=HOST,
        prefix=f"/{key}",
        websocket_origin=[f"{HOST}:{port}"],
        show=False,
        title="Falloff explorer",
        threaded=True,
        verbose=False,
        session_token_expiration=TOKEN_S,
        unused_session_lifetime_milliseconds=1000 * UNUSED_S,
    )
    try:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                break
            time.sleep(0.05)
        else:
            raise FalloffError(f"no server started on port {port}: try again, or another --port")
        yield PageServer(thread, f"http://{HOST}:{port}/{key}/")
    finally:
        thread.stop()  # otherwise it would keep the program alive
