"""Programs that carry frames between interfaces which they make themselves."""

from pathlib import Path

from runners.record import FalloffError
from runners.testbeds import netns, programs


def awaited(started: programs.Started, space: Path, interface: str) -> programs.Started:
    """The program when the last interface that it makes is there; raises FalloffError when it ends before."""

    def there() -> bool:
        with netns.entered(space):
            return f"{interface}:" in Path("/proc/thread-self/net/dev").read_text()

    if not programs.serves(started, there):
        said = started.complaints.read_text(encoding="utf-8", errors="replace").strip() or "it made no interface"
        raise FalloffError(f"{started.tool} does not start: {said}")
    return started
