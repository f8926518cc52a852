"""Whether nodes reach each other: every port on every network, with full frames both ways; and whose clock is off.

usage: python3 - NETWORKS PATIENCE_S PORT... < node_reach.py   (on all of the nodes at once)

NETWORKS is JSON: by network, the address of each node by its name; a node knows its own as one that it can bind.
It visits the ports of the others for PATIENCE_S at most, and serves its own until all have met, or a third longer.
An answer may take that third: more than 1 s, after which the kernel repeats a request that was lost.

Prints a JSON object that has, by network, `taken` (the ports that another program has here) and `others`: by node
`ports`, why it was not reached at each, empty where it was; and, where it was at any, `offset_s`, its clock less this
one's, which is known to within half of `round_trip_s`.
"""

import asyncio
import json
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Sequence

_FULL_FRAMES = bytes(
    65536
)  # a switch whose MTU is smaller than the nodes' drops them without a word
_AGAIN_S = 0.1
_CLOCK = struct.Struct("!d")

_LOST = (OSError, asyncio.IncompleteReadError)


@dataclass(frozen=True)
class Patience:
    """Until when visits are repeated, on the monotonic clock, and how long an answer may take; seconds."""

    deadline: float
    answer_s: float


async def meet(
    nodes: Mapping[str, str], me: str, ports: Sequence[int], patience: Patience
) -> Dict[str, Any]:
    """Serve and visit on one network, `nodes` having the address of each."""
    served = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        try:
            await reader.readexactly(1)
            writer.write(_CLOCK.pack(time.time()))
            writer.write(await reader.readexactly(len(_FULL_FRAMES)))
            await writer.drain()
            served += 1
        except (*_LOST, asyncio.CancelledError):
            pass  # it is the visitor that tells, and comes again; cancelled is who still waits at the end
        finally:
            writer.close()

    servers, taken = [], []
    for port in ports:
        try:
            servers.append(await asyncio.start_server(serve, nodes[me], port))
        except OSError:
            taken.append(port)
    others = [name for name in nodes if name != me]
    met = await asyncio.gather(
        *(_visits(nodes[me], nodes[other], ports, patience) for other in others)
    )
    end = patience.deadline + patience.answer_s
    while served < len(servers) * len(others) and time.monotonic() < end:
        await asyncio.sleep(_AGAIN_S)
    return {"taken": taken, "others": dict(zip(others, met))}


async def _visits(
    source: str, target: str, ports: Sequence[int], patience: Patience
) -> Dict[str, Any]:
    said = await asyncio.gather(*(_visit(source, target, port, patience) for port in ports))
    reasons = {str(port): answer.get("error", "") for port, answer in zip(ports, said)}
    timed = [answer for answer in said if "error" not in answer]
    return {"ports": reasons, **min(timed, key=lambda answer: answer["round_trip_s"], default={})}


async def _visit(source: str, target: str, port: int, patience: Patience) -> Dict[str, Any]:
    """Try until it succeeds: the other node may not have started yet."""
    while True:
        try:
            return await _exchange(source, target, port, patience.answer_s)
        except asyncio.TimeoutError:
            reason = "no answer"
        except _LOST as error:
            reason = getattr(error, "strerror", None) or "the connection was closed"
        if time.monotonic() > patience.deadline:
            return {"error": reason}
        await asyncio.sleep(_AGAIN_S)


async def _exchange(source: str, target: str, port: int, answer_s: float) -> Dict[str, Any]:
    opening = asyncio.open_connection(target, port, local_addr=(source, 0))
    reader, writer = await asyncio.wait_for(opening, answer_s)
    try:
        begin = time.time()
        writer.write(b"?")
        (theirs,) = _CLOCK.unpack(await asyncio.wait_for(reader.readexactly(_CLOCK.size), answer_s))
        end = time.time()
        writer.write(_FULL_FRAMES)
        try:
            await asyncio.wait_for(reader.readexactly(len(_FULL_FRAMES)), answer_s)
        except asyncio.TimeoutError:
            return {"error": "full frames are lost"}  # the kernel repeated them in vain
    finally:
        writer.close()
    return {"offset_s": theirs - (begin + end) / 2, "round_trip_s": end - begin}


def is_here(address: str) -> bool:
    """Whether an address is one of this node's."""
    with socket.socket() as attempt:
        try:
            attempt.bind((address, 0))
        except OSError:
            return False
    return True


async def main(
    networks: Mapping[str, Mapping[str, str]], patience_s: float, ports: Sequence[int]
) -> Dict[str, Any]:
    """Meet the others on all networks that this node has an address on, at the same time."""
    patience = Patience(time.monotonic() + patience_s, patience_s / 3)
    own = {
        network: me
        for network, nodes in networks.items()
        for me, address in nodes.items()
        if is_here(address)
    }
    met = await asyncio.gather(
        *(meet(networks[network], me, ports, patience) for network, me in own.items())
    )
    return dict(zip(own, met))


if __name__ == "__main__":
    print(
        json.dumps(
            asyncio.run(
                main(json.loads(sys.argv[1]), float(sys.argv[2]), list(map(int, sys.argv[3:])))
            )
        )
    )
