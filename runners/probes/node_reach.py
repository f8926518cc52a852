"""Test whether nodes reach each other: every port on every network, with full frames both ways.

usage: python3 - NETWORKS PATIENCE_S PORT... < node_reach.py   (on all of the nodes at once)

NETWORKS is JSON: by network, the address of each node by name. A node recognises its own address
because it can bind it. It visits the others' ports for at most PATIENCE_S, and serves its own until
all have met, or a third of that longer. An answer may take this third. It is more than 1 s, after
which the kernel repeats a lost request.

It prints a JSON object with, by network, `taken` (the ports that another program uses here) and
`others`: for each node `ports`, with the reason why each port was not reached, empty if it was.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import Mapping, Sequence

# A switch with a smaller MTU than the nodes' silently drops full frames.
_FULL_FRAMES = bytes(65536)
_AGAIN_S = 0.1
_LOST = (OSError, asyncio.IncompleteReadError)


async def meet(nodes: Mapping[str, str], me: str, ports: Sequence[int], patience_s: float) -> dict:
    """Serve and visit on one network, `nodes` having the address of each."""
    served, deadline = 0, time.monotonic() + patience_s

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        try:
            writer.write(await reader.readexactly(len(_FULL_FRAMES)))
            writer.close()
            await writer.wait_closed()  # who ended before all was sent would be found away
            served += 1
        except (*_LOST, asyncio.CancelledError):
            # it is the visitor that tells, and comes again; cancelled is who still waits at the end
            pass
        finally:
            writer.close()

    servers, taken = [], []
    for port in ports:
        try:
            servers.append(await asyncio.start_server(serve, nodes[me], port))
        except OSError:
            taken.append(port)
    others = [other for other in nodes if other != me]
    visits = [
        visit(nodes[me], nodes[other], port, deadline, patience_s / 3)
        for other in others
        for port in ports
    ]
    reasons = iter(await asyncio.gather(*visits))
    met = {other: {"ports": {str(port): next(reasons) for port in ports}} for other in others}
    while served < len(servers) * len(others) and time.monotonic() < deadline + patience_s / 3:
        await asyncio.sleep(_AGAIN_S)
    return {"taken": taken, "others": met}


async def visit(source: str, target: str, port: int, deadline: float, answer_s: float) -> str:
    """Try until it succeeds, since the other node may not have started yet; why it did not in the
    end.
    """
    while True:
        try:
            opening = asyncio.open_connection(target, port, local_addr=(source, 0))
            reader, writer = await asyncio.wait_for(opening, answer_s)
            try:
                writer.write(_FULL_FRAMES)
                await asyncio.wait_for(reader.readexactly(len(_FULL_FRAMES)), answer_s)
                return ""
            except asyncio.TimeoutError:
                return "full frames are lost"  # the kernel repeated them without success
            finally:
                writer.close()
        except asyncio.TimeoutError:
            reason = "no answer"
        except _LOST as error:
            reason = getattr(error, "strerror", None) or "the connection was closed"
        if time.monotonic() > deadline:
            return reason
        await asyncio.sleep(_AGAIN_S)


def is_here(address: str) -> bool:
    """Whether an address belongs to this node."""
    with socket.socket() as attempt:
        try:
            attempt.bind((address, 0))
        except OSError:
            return False
    return True


async def main(
    networks: Mapping[str, Mapping[str, str]], patience_s: float, ports: Sequence[int]
) -> dict:
    """Meet the others on all networks that this node has an address on, at the same time."""
    mine: dict[str, str] = {}
    for network, nodes in networks.items():
        mine.update((network, name) for name, address in nodes.items() if is_here(address))
    met = await asyncio.gather(
        *(meet(networks[network], me, ports, patience_s) for network, me in mine.items())
    )
    return dict(zip(mine, met))


if __name__ == "__main__":
    answer = asyncio.run(
        main(json.loads(sys.argv[1]), float(sys.argv[2]), list(map(int, sys.argv[3:])))
    )
    print(json.dumps(answer))
