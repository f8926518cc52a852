"""Whether nodes reach each other: every port on every network, with full frames both ways.

usage: python3 - NETWORKS PATIENCE_S PORT... < node_reach.py   (on all of the nodes at once)

NETWORKS is JSON: by network, the address of each node by its name; a node knows its own as one that it can bind.
It visits the ports of the others for PATIENCE_S at most, and serves its own until all have met, or a third longer.
An answer may take that third: more than 1 s, after which the kernel repeats a request that was lost.

Prints a JSON object that has, by network, `taken` (the ports that another program has here) and `others`: by node
`ports`, why it was not reached at each, empty where it was.
"""

import asyncio
import json
import socket
import sys
import time
from typing import Any, Dict, Mapping, NamedTuple, Sequence

_FULL_FRAMES = bytes(
    65536
)  # a switch whose MTU is smaller than the nodes' drops them without a word
_AGAIN_S = 0.1
_LOST = (OSError, asyncio.IncompleteReadError)


class Patience(NamedTuple):
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
    visits = {
        other: asyncio.gather(*(_visit(nodes[me], nodes[other], port, patience) for port in ports))
        for other in nodes
        if other != me
    }
    others = {
        other: {"ports": dict(zip(map(str, ports), await visit))} for other, visit in visits.items()
    }
    end = patience.deadline + patience.answer_s
    while served < len(servers) * len(others) and time.monotonic() < end:
        await asyncio.sleep(_AGAIN_S)
    return {"taken": taken, "others": others}


async def _visit(source: str, target: str, port: int, patience: Patience) -> str:
    """Try until it succeeds, since the other node may not have started yet; why it did not in the end."""
    while True:
        try:
            return await _exchange(source, target, port, patience.answer_s)
        except asyncio.TimeoutError:
            reason = "no answer"
        except _LOST as error:
            reason = getattr(error, "strerror", None) or "the connection was closed"
        if time.monotonic() > patience.deadline:
            return reason
        await asyncio.sleep(_AGAIN_S)


async def _exchange(source: str, target: str, port: int, answer_s: float) -> str:
    opening = asyncio.open_connection(target, port, local_addr=(source, 0))
    reader, writer = await asyncio.wait_for(opening, answer_s)
    try:
        writer.write(_FULL_FRAMES)
        await asyncio.wait_for(reader.readexactly(len(_FULL_FRAMES)), answer_s)
    except asyncio.TimeoutError:
        return "full frames are lost"  # the kernel repeated them in vain
    finally:
        writer.close()
    return ""


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
    mine = {}
    for network, nodes in networks.items():
        mine.update((network, name) for name, address in nodes.items() if is_here(address))
    met = await asyncio.gather(
        *(meet(networks[network], me, ports, patience) for network, me in mine.items())
    )
    return dict(zip(mine, met))


if __name__ == "__main__":
    answer = asyncio.run(
        main(json.loads(sys.argv[1]), float(sys.argv[2]), list(map(int, sys.argv[3:])))
    )
    print(json.dumps(answer))
