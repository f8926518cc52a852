"""The explorer's server: on loopback alone, for who has the signed address."""

import logging
import secrets
import socket
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import panel as pn
from bokeh.util.token import generate_session_id
from panel.io.server import StoppableThread
from panel.reactive import Syncable

from analysis.explorer import document, sources
from analysis.explorer.shown import Shown
from runners.record import FalloffError

HOST = "127.0.0.1"
Syncable._debounce = 5  # milliseconds, of Panel's 50, that it waits for more before it answers a widget
LIFETIME = 3_600_000  # milliseconds that a page waits for its reader, who may reload it
PATIENCE = 600  # twentieths of a second that a server may take to start


# A reader who closes the page while it is sent is no fault.
logging.getLogger("asyncio").addFilter(lambda record: "WebSocketClosedError" not in record.getMessage())


@dataclass(frozen=True)
class Served:
    """A server that runs on a port; `secret` signs the tokens of its addresses."""

    server: StoppableThread
    port: int
    secret: bytes

    def address(self) -> str:
        """A new address whose token opens a page of its own; who opens the same one again sees the same page."""
        return f"http://{HOST}:{self.port}/?bokeh-session-id={generate_session_id(self.secret, signed=True)}"

    def wait(self) -> None:
        """Until the server ends; an interruption is the caller's."""
        self.server.join()

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it."""
        self.server.stop()


def serve(folder: Path | None, port: int = 0, draw: Callable[[Shown], bytes] | None = None) -> Served:
    """Start the server, in a thread of its own, on a port, any free one for 0; it answers when this returns.

    `draw` makes the SVG of what a page shows. Raises FalloffError when the port is taken, or there is no such folder.
    """
    sources.experiments(folder)  # refuses a folder that is not there
    chosen = _free(port)
    secret = secrets.token_urlsafe(32).encode()
    server = pn.serve(
        lambda: document.document(folder, draw),
        port=chosen,
        address=HOST,
        websocket_origin=[f"{HOST}:{chosen}"],
        show=False,
        title="Falloff explorer",
        threaded=True,
        sign_sessions=True,
        secret_key=secret,
        generate_session_ids=False,
        unused_session_lifetime_milliseconds=LIFETIME,
        verbose=False,
    )
    served = Served(server, chosen, secret)
    try:
        _await(chosen)
    except BaseException:  # its thread would keep the program from ending
        served.stop()
        raise
    return served


def made_ready(served: Served) -> str:
    """An address whose page is made already, so that a browser only has to draw it."""
    address = served.address()
    with urllib.request.urlopen(address) as answer:
        answer.read()
    return address


def _free(port: int) -> int:
    """The port itself, or for 0 a free one."""
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((HOST, port))
        except OSError:
            raise FalloffError(f"port {port} is taken: choose another, or any free one with --port 0") from None
        return trying.getsockname()[1]


def _await(port: int) -> None:
    for _ in range(PATIENCE):
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.05)
    raise FalloffError(f"the explorer's server did not start on port {port}: try again, or another --port")
