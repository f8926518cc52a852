"""incast: one receiver asks several senders for a block at once, and for the next when it has all
of it.

The pattern is that of striped storage (Phanishayee et al., FAST 2008): a block is complete when the
last sender's part is, so one part that has to wait for a retransmission timeout delays all.
"""

import re

from runners.parsing import GOODPUT, require_numbered, whole
from runners.records.description_rules import COUNT, POSITIVE
from runners.records.record import (
    Command,
    Contradictory,
    Cut,
    Mark,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Transcript,
)

PORT = 5301
RECEIVER = 1

_HEAD = re.compile(
    r"^incast: (?P<senders>\d{1,4}) senders, (?P<block_bytes>\d{1,13}) bytes from each, "
    r"first block \d{1,9}\.\d{9} s$",
    re.M,
)
_BLOCK = re.compile(r"^(\d{1,7}) (\d{1,9}\.\d{9})$", re.M)
_SENDER = re.compile(r"^sender (\d{1,4}): (-?\d{1,12}) timeouts, (-?\d{1,12}) retransmitted$", re.M)


def commands(point: Settings) -> list[Command]:
    """A server on each of the nodes from 2 on, then the receiver on node 1."""
    senders = range(RECEIVER + 1, RECEIVER + 1 + point["senders"])
    limit = float(point["timeout_s"])
    servers = [
        Command(
            ("incast", "serve", str(PORT)),
            node=node,
            background=True,
            listens=PORT,
            timeout_s=limit,
        )
        for node in senders
    ]
    addresses = ",".join(f"{{node{node}}}" for node in senders)
    argv = ("incast", "fetch", str(PORT), str(point["block_bytes"]), str(point["blocks_fetched"]))
    client = (*argv, str(point["fetch_s"]), addresses)
    return [*servers, Command(client, node=RECEIVER, timeout_s=limit)]


def results(text: str) -> list[Result]:
    """The one result of an output, with its settings.

    goodput [bit/s] is that of all counted blocks together; block_time [s] has each block's, from
    the requests to the last byte. timeouts and retransmitted are lists over nodes, None on the
    receiver and where the sender's kernel does not count. Raises Unreadable if the output is
    incomplete or contradicts itself.
    """
    settings = whole("incast", text, _HEAD)
    senders, size = settings["senders"], settings["block_bytes"]
    blocks, counts = _BLOCK.findall(text), _SENDER.findall(text)
    require_numbered("incast", blocks, len(blocks), "blocks")
    require_numbered("incast", counts, senders, "senders")
    times = [float(seconds) for _, seconds in blocks]
    if not times or min(times) <= 0:
        raise Contradictory("no block took any time")
    timeouts, repeated = (
        [None, *(int(row[place]) if int(row[place]) >= 0 else None for row in counts)]
        for place in (1, 2)
    )
    readings = {
        "goodput": 8 * size * senders * len(times) / sum(times),
        "block_time": times,
        "timeouts": timeouts,
        "retransmitted": repeated,
    }
    return [Result(readings, settings)]


def parse(transcript: Transcript) -> Readings:
    """The readings of a trial; raises as `results` does, and Cut if there are fewer blocks than the
    program fetches."""
    point, readings = transcript.trial.point, TOOL.only_result(transcript)
    times = readings["block_time"]
    if len(times) < point["blocks_fetched"] and sum(times) < point["fetch_s"]:
        raise Cut(f"{len(times)} of {point['blocks_fetched']} blocks are there")
    return readings


TOOL = Tool(
    "incast",
    commands,
    results,
    settings={
        "senders": COUNT,
        "block_bytes": COUNT,
        "blocks_fetched": COUNT,
        "fetch_s": POSITIVE,
        "timeout_s": POSITIVE,
    },
    readings={
        **GOODPUT,
        "block_time": Quantity(
            "time from a block's requests to its last byte", "s", dims=("trial", "run")
        ),
        "timeouts": Quantity(
            "retransmission timeouts of the sending node's TCP", "1", dims=("trial", "node")
        ),
        "retransmitted": Quantity(
            "segments that the sending node's TCP sent again", "1", dims=("trial", "node")
        ),
    },
    factors={
        "senders": Quantity("nodes that send to one at the same time", "1"),
        "block_bytes": Quantity("bytes of a block from each sender", "B"),
    },
    marks=(Mark(r"^incast: \d+ senders, ", "times of blocks that incast fetched"),),
    parse_trial=parse,
)
