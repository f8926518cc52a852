"""The rules of a scale model: how much each of its points is slowed, and the sizes of its socket
buffers.

A scale model has matrices s times smaller in each dimension than the cluster that it represents.
Its nodes and links are slower by so much that a run spends the same share of its time on bytes. Two
things do not shrink by themselves: the time that this machine takes for a message, and the buffers
into which a message vanishes before its receiver is ready. So time is slowed until this machine's
messages are quick enough, and what they lack is added as a delay.
"""

import math
from collections.abc import Mapping
from typing import Optional

from runners.records.record import Description, Settings

_LEAST_BUFFER = 4096  # B: the kernel's minimum for a socket
_FIRST = {"rmem": 131072, "wmem": 16384}  # B: the defaults of Linux's tcp(7)
# Half of a receive buffer is for the kernel's own records; the rest takes the content of a send
# buffer.
_TIMES = {"rmem": 2, "wmem": 1}


def dilation(testbed: Description, interconnect: str, nodes: int) -> Optional[int]:
    """How many times slower than the cluster's links a point's links are; None if the testbed has
    no such rule.

    It is the least dilation at which a message takes no larger share of the run than on the
    cluster, this machine can serve all nodes, and a run is long enough to be timed. Raises KeyError
    for a network that the rule does not name.
    """
    rule = testbed.get("scale")
    if rule is None:
        return None
    of_messages = rule["machine_message_s"] / message_s(testbed, interconnect, 1)
    if nodes == 1:  # there are no messages
        of_messages = 0.0
    return math.ceil(max(of_messages, rule["least_a_node"] * nodes, rule["least"]))


def message_s(testbed: Description, interconnect: str, dilation: float) -> float:
    """What a message has to take at a dilation for the share of the run that it has on the cluster
    [s].

    HPL exchanges messages for each of its N columns, and its time goes as N^3 / F. With N / s and
    nodes of flop_s at dilation d0, a message that takes m0 on the cluster has to take
    m0 F d / (s^2 flop_s d0) here. Raises KeyError as `dilation` does.
    """
    rule, node = testbed["scale"], testbed["node"]
    slower = rule["smaller"] ** 2 * node["flop_s"] * node["dilation"] / rule["flop_s"]
    return rule["message_s"][interconnect] * dilation / slower


def load(testbed: Description, point: Settings) -> float:
    """The share of this machine [1] that a point takes: the more time is slowed, the less each node
    computes.

    It is 1 if the testbed has no such rule, if the point is to run `alone`, or if it has no
    dilation or number of nodes, as in a survey.
    """
    whole = testbed.get("scale", {}).get("whole_machine_a_node")
    if whole is None or point.get("alone") or "dilation" not in point or "nodes" not in point:
        return 1.0
    return min(1.0, whole * point["nodes"] / point["dilation"])


def together_s(times: Mapping[tuple[float, float], int]) -> float:
    """The time [s] of trials that run side by side as far as their loads allow; `times` says how
    many take these seconds at this load."""
    total = sum(count * seconds * load for (seconds, load), count in times.items())
    return max([total, *(seconds for seconds, _ in times)])


def buffers(rule: Description, rate_bit_s: Optional[float]) -> dict[str, list[int]]:
    """The least, first and most bytes of a socket's buffers (`rmem`, `wmem`) on links of a rate;
    None: unlimited.

    They hold what the link carries in `hold_s` of this machine's time, which is long compared with
    a round trip and its acknowledgement, but at least `least_bytes`, in which the kernel's own
    records of single frames count. On unlimited links the size is `most_bytes`.
    """
    held = rule["most_bytes"]
    if rate_bit_s is not None:
        held = min(held, max(rule["least_bytes"], int(rate_bit_s / 8 * rule["hold_s"])))
    most = {name: times * held for name, times in _TIMES.items()}
    return {name: [_LEAST_BUFFER, min(_FIRST[name], most[name]), most[name]] for name in most}
