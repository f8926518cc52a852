"""What every rank of an HPL run sends, by the steps of the law of HPL's messages."""

from collections.abc import Iterator

import numpy as np

from analysis.laws.models import _hpl_steps as steps


def sent(N: int, NB: int, P: int, Q: int, pivots=None) -> dict[str, np.ndarray]:
    """What every rank sends: for each kind an array of messages and bytes, shape (2, P, Q).

    The kinds are pivots, broadcast, swaps and solve. `pivots` has the row of each column's pivot,
    by default those of `drawn_pivots`.
    """
    pivots = steps.drawn_pivots(N) if pivots is None else np.asarray(pivots)
    counts = {kind: np.zeros((2, P, Q), int) for kind in ("pivots", "broadcast", "swaps", "solve")}

    def send(kind, where, numbers, times=1):
        numbers = np.asarray(numbers)
        counts[kind][0][where] += times * (numbers > 0)
        counts[kind][1][where] += times * steps.DOUBLE * numbers

    for turn, first in enumerate(range(0, N, NB)):
        step = steps.panel(N, NB, P, Q, first, turn)
        for a, b, there, back in steps.pivot_meetings(P, step.width):
            for rank, (_, numbers) in ((a, there), (b, back)):
                send("pivots", ((step.row + rank) % P, step.column), numbers, step.width)
        for sender, _ in steps.broadcast_hops(Q):
            send("broadcast", (slice(None), (step.column + sender) % Q), steps.panel_size(step))
        for columns, met in steps.swaps(step, P, NB, first, pivots):
            for a, b, there, back in met:
                for rank, (rows, more) in ((a, there), (b, back)):
                    send("swaps", (rank, columns), rows * step.right[columns] + more)
    for whose, numbers in solve_messages(N, NB, P, Q):
        send("solve", whose, numbers)
    return counts


def solve_messages(N: int, NB: int, P: int, Q: int) -> Iterator[tuple[tuple[int, int], int]]:
    """HPL_pdtrsv's messages: the sender's (row, column) in the grid, and the count of numbers."""
    blocks = -(-N // NB)
    of_b = N // NB % Q
    if of_b != (blocks - 1) % Q:
        for row, numbers in enumerate(steps.local(N, NB, 0, P).tolist()):
            yield (row, of_b), numbers
    reach = max((Q - 1) * NB, NB)
    for block in range(blocks - 1, 0, -1):
        row, column, above = block % P, block % Q, block * NB
        for hop in range(P - 1):
            yield ((row - hop) % P, column), min(NB, N - above)
        if Q > 1:
            near = steps.local(above, NB, 0, P) - steps.local(max(above - reach, 0), NB, 0, P)
            yield from (((at, column), numbers) for at, numbers in enumerate(near.tolist()))
    for sender, _, _ in steps._tree(P):
        yield (sender, 0), min(NB, N)
