"""The explorer's server: on loopback alone, for who has the address with its key."""

import logging
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import panel as pn
from jupyter_core.paths import jupyter_runtime_dir
from panel.io.server import StoppableThread

from analysis.explorer import data
from analysis.explorer.page import document
from runners.record import FalloffError

HOST = "127.0.0.1"
# A page that was fetched may connect, and connect again after a laptop slept, for as long as a server can run.
TOKEN_S = 365 * 24 * 3600
UNUSED_S = 300  # that a page is kept whose reader has gone; its address brings it back
PATIENCE_S = 30  # that a server may take to start

# A reader who closes the page while it is sent is no fault.
logging.getLogger("asyncio").addFilter(
    lambda record: "WebSocketClosedError" not in record.getMessage()
)


class Served(NamedTuple):
    """A server's thread; who has the address has the page, each tab its own view."""

    thread: StoppableThread
    address: str

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.thread.stop()


@contextmanager
def redirecting(address: str) -> Iterator[str]:
    """The address of a file, for this user alone, that leads a browser to a page's: every user may read command lines."""
    folder = Path(jupyter_runtime_dir())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(  # of mode 0600
        "w", dir=folder, prefix="falloff-explorer-", suffix=".html"
    ) as file:
        file.write(
            f'<meta http-equiv="refresh" content="0;url={address}"><a href="{address}">Explorer</a>'
        )
        file.flush()
        yield Path(file.name).as_uri()


def serve(folder: Path | None, port: int = 0) -> Served:
    """Start the server, in a thread of its own, on a port, any free one for 0; it answers when this returns.

    Raises FalloffError when the port is taken, or there is no such folder.
    """
    data.experiments(folder)  # refuses a folder that is not there
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((HOST, port))
        except (OSError, OverflowError) as error:  # taken, for root alone, or no port
            reason = getattr(error, "strerror", None) or error
            raise FalloffError(
                f"port {port}: {reason}; choose another, or any free one with --port 0"
            ) from None
        port = trying.getsockname()[1]
    key = secrets.token_urlsafe(24)
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
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return Served(thread, f"http://{HOST}:{port}/{key}/")
        time.sleep(0.05)
    thread.stop()  # it would keep the program from ending
    raise FalloffError(f"no server started on port {port}: try again, or another --port")
