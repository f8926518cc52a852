"""Which node each process of a job runs on: neighbours in a job need not be neighbours on a
switch."""

import random

from runners.records.record import FalloffError


def order(nodes: int, placement: str, seed: str) -> list[int]:
    """The node of each rank, of the nodes 1 to `nodes`: `in_order`, or `shuffled` by the seed.

    Raises FalloffError for another placement.
    """
    numbers = list(range(1, nodes + 1))
    if placement == "shuffled":
        random.Random(seed).shuffle(numbers)
    elif placement != "in_order":
        raise FalloffError(f"placement {placement!r} is neither in_order nor shuffled")
    return numbers
