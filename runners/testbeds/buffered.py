"""A switch with a buffer: what its program is told, what it has counted, and whether it kept up."""

import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from runners.records.record import FalloffError
from runners.testbeds.graph import Buffer
from runners.testbeds.programs import RunningProgram

PROGRAM = "buffered_switch"
# A trial's `switch`, unless frames arrived later than computed by more than a full frame's time on
# the wire, on average.
KEPT = "in time"

_PATIENCE_S = 5.0
_STEP_S = 0.002
# B on the wire of a frame, besides the packet: preamble 8, header 14, checksum 4, gap 12.
_UNCOUNTED = 38
_HEAD = re.compile(
    r"^buffered_switch: (\d+) ports, buffer (\d+) alpha (\S+) pause (\d+) mark (\d+) "
    r"delay (\S+) free (\d+)$"
)


@dataclass(frozen=True)
class Port:
    """What an output port has carried and refused: frames and bytes to its node, frames dropped
    for want of memory, frames marked, the most bytes in its queue; and how often and how long [s]
    its node was paused."""

    rate_bit_s: float
    frames: float
    bytes: float
    drops: float
    marks: float
    most_queued: float
    pauses: float
    paused_s: float


@dataclass(frozen=True)
class Report:
    """What a switch has counted since it was asked before. `late_s` and `most_late_s` [s] are the
    mean and the largest time by which it handed frames over too late."""

    buffer: Buffer
    ports: tuple[Port, ...]
    late_s: float
    most_late_s: float

    def settings(self, mtu: int) -> dict:
        """What the switch works with, under the names of `settings`."""
        rates = sorted({port.rate_bit_s for port in self.ports})
        frame_s = 8 * (mtu + _UNCOUNTED) / rates[-1]
        late = f"late: by {1e6 * self.late_s:.0f} us a frame, which takes {1e6 * frame_s:.0f} us"
        is_late = self.late_s > frame_s
        return {**settings(self.buffer, rates), "switch": late if is_late else KEPT}

    def counters(self) -> dict:
        """The counters of a trial: lists over the nodes, and numbers."""
        of_ports = {
            f"port_{name}": [getattr(port, name) for port in self.ports]
            for name in ("frames", "drops", "marks", "most_queued", "pauses")
        }
        of_ports["port_paused"] = [port.paused_s for port in self.ports]
        return {**of_ports, "switch_late": self.late_s, "switch_most_late": self.most_late_s}


def settings(buffer: Buffer, rates: Sequence[float]) -> dict:
    """The settings of a switch with links of these rates [bit/s], to be found when reading back."""
    return {
        "buffer_bytes": buffer.bytes,
        "buffer_alpha": buffer.alpha,
        "pause_bytes": buffer.pause_bytes,
        "mark_bytes": buffer.mark_bytes,
        "switch_delay_s": round(buffer.delay_s, 9),
        **({"free_bytes": buffer.free_bytes} if buffer.free_bytes else {}),
        "port_rate_bit_s": ", ".join(f"{rate:.0f}" for rate in sorted(set(rates))),
    }


def words(file: Path, buffer: Buffer, ports: Sequence[Sequence]) -> list[str]:
    """The program's arguments. Each port has the file of its node's network namespace, the name and
    the hardware address of the interface there, and its rate [bit/s]."""
    arguments = [str(file), *map(repr, astuple(buffer))]
    for *names, rate in ports:
        arguments += [*map(str, names), repr(float(rate))]
    return arguments


def ask(switch: RunningProgram, file: Path) -> Report:
    """What a switch has counted since it was asked before; `file` is the one that it writes to.

    Raises FalloffError if it does not answer.
    """
    with suppress(FileNotFoundError):
        file.unlink()
    switch.send(signal.SIGUSR1)
    deadline = time.monotonic() + _PATIENCE_S
    while not file.exists():
        if switch.poll() is not None or time.monotonic() > deadline:
            complaint = switch.complaints.strip() or "it does not answer"
            raise FalloffError(f"{PROGRAM}: {complaint}")
        time.sleep(_STEP_S)
    return read(file.read_text(encoding="ascii"))


def read(text: str) -> Report:
    """The report in a text; raises FalloffError if it is not whole."""
    lines = text.splitlines()
    head = _HEAD.match(lines[0]) if lines else None
    if not head or lines[-1] != f"end of {PROGRAM}" or len(lines) != int(head[1]) + 3:
        raise FalloffError(f"{PROGRAM} wrote no whole report: {text[:100]!r}")
    ports = []
    for line in lines[1:-2]:
        _, rate, frames, size, drops, _, marks, most, pauses, paused = line.split()
        counts = rate, frames, size, drops, marks, most, pauses, paused
        ports.append(Port(*map(float, counts)))
    memory, alpha, pause, mark, delay, free = head.groups()[1:]
    buffer = Buffer(int(memory), float(alpha), int(pause), int(mark), float(delay), int(free))
    _, frames, late, most = lines[-2].split()
    mean = float(late) / int(frames) if int(frames) else 0.0
    return Report(buffer, tuple(ports), mean, float(most))
