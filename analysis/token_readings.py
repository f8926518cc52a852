"""What the Beowulf study's throughput would ask of its wires, for each reading of 'tokens written'."""

from dataclasses import dataclass

from analysis import published
from analysis.framing import message_wire_bytes
from analysis.wire import IPV4_HEADER, TCP_HEADER

ETHERNET_MTU = 1500  # bytes; IEEE 802.3's, which every wire of the time had
HEADERS = IPV4_HEADER + TCP_HEADER  # timestamps are younger than the study's kernels
FAST_WIRE = 100e6  # bit/s: what one wire would have to be if all pairs shared it

# Messages that cross the wires for each token that counts as written.
WRITES = {"the producer": 2, "both ends": 1}


@dataclass(frozen=True)
class Reading:
    """The printed throughput as a part of what the wires carry, if `writes` are what was counted.

    `wires` of `rate` [bit/s] are busses, which both ways share. `share` counts the tokens alone, `framed`
    with their headers, preambles and gaps; acknowledgements come on top. Beyond 1 the reading is impossible.
    """

    writes: str
    wires: int
    rate: float
    share: float
    framed: float

    @property
    def possible(self) -> bool:
        """Whether these wires can carry it."""
        return self.framed <= 1


def readings() -> tuple[Reading, ...]:
    """Each reading on the study's own wires, one for each pair, and on a single fast one for all pairs."""
    source = published.beowulf()
    throughput = source["throughput"]["local_wire"]["value"]
    token = source["exchange"]["largest_token"]["value"]
    framing = message_wire_bytes(token, ETHERNET_MTU, HEADERS) / token
    used = min(source["exchange"]["most_pairs"]["value"], source["wires"]["mesh"]["value"])
    supposed = ((used, source["wires"]["rate"]["value"]), (1, FAST_WIRE))
    return tuple(
        Reading(writes, wires, rate, share := messages * throughput / (wires * rate / 8), share * framing)
        for wires, rate in supposed
        for writes, messages in WRITES.items()
    )
