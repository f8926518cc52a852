"""HPL's steps, panel by panel: who sends how much to whom in which order, and when the last rank is
done.

This follows HPL 2.0 from netlib, by default with DEPTH 0, BCAST 1 (increasing ring, modified), SWAP
2 (mix) with its threshold, and equilibration; `Algorithm` names what else there is. Source:
HPL_pdgesv0, HPL_pdgesvK1, HPL_pdmxswp, HPL_bcast_1ring, 1rinM and 2ring, HPL_pdlaswp00T,
HPL_pdlaswp01T with HPL_spreadT, HPL_equil and HPL_rollT, and HPL_pdtrsv, in
https://www.netlib.org/benchmark/hpl.

Every message is a meeting of two ranks: neither continues before the last byte has arrived. MPI
transfers messages above its eager limit in this way. With a look-ahead a panel travels meanwhile.
What a message costs says a `Network`: with one rank a node, a line by size; of several ranks a
node, `ping_pong.SharedLinks`. The messages and bytes of every rank equal those of HPL's own code in
simulation, to the byte. The time is that of SimGrid within 0.4 % if the eager limit is small, on
one rank a node and without a look-ahead (tests/test_hpl_steps.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from analysis.laws.models import Number

DOUBLE = 8  # bytes
THRESHOLD = 64  # local columns up to which rows are swapped by binary exchange (SWAP_THRESHOLD)
NBMIN, NDIV = 4, 2  # of the recursion within a panel
PANELS = 600  # of more panels only a part is computed, which changes the time by 0.6 % at most

Size = tuple[int, int]  # of a message: rows of all local columns, and more numbers beside them
NOTHING: Size = (0, 0)


class Meeting(NamedTuple):
    """Two ranks of a column of the grid exchange data at the same time: `a` sends `there`, `b`
    sends `back`."""

    a: int
    b: int
    there: Size
    back: Size


def local(n: int, block: int, owner: int, count: int) -> np.ndarray:
    """How many of n rows or columns, dealt out in blocks over `count` ranks, each rank has, shape
    (count,); `owner` has the first."""
    place = (np.arange(count) - owner) % count
    whole, rest = divmod(n, block)
    share, last = divmod(whole, count)
    return share * block + np.where(place < last, block, np.where(place == last, rest, 0))


def drawn_pivots(order: int) -> np.ndarray:
    """The row of each column's pivot, shape (N,): any remaining row, with equal probability.

    The simulated HPL (simulated_hpl.c) draws the same pivots, so that its messages can be predicted
    to the byte.
    """
    column = np.arange(order, dtype=np.uint64)
    golden = np.uint64(0x9E3779B97F4A7C15)
    x = column * golden + golden  # SplitMix64
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return (column + x % (np.uint64(order) - column)).astype(int)


def rows_of_u(pivots: np.ndarray, first: int, block: int, P: int) -> np.ndarray:
    """How many rows of U come from each of the P rows of the grid, for a panel with these pivots.

    A row that is not the panel's own gives every row in which a pivot was found, once; the panel's
    own gives the rest.
    """
    owner = first // block % P
    owners = np.unique(pivots) // block % P
    rows = np.bincount(owners[owners != owner], minlength=P)
    rows[owner] = len(pivots) - rows.sum()
    return rows


# ---- one column's pivot (HPL_pdmxswp) ----


@cache
def pivot_meetings(P: int, width: int) -> tuple[Meeting, ...]:
    """The meetings of a column of P ranks to find a pivot of a panel of this width; ranks count
    from the panel's own row."""
    head = 4
    candidate, both, row = (0, head + width), (0, head + 2 * width), (0, width)
    power = 1 << (P.bit_length() - 1)
    met = [Meeting(0, power, row, candidate)] if P > power else []
    met += [Meeting(extra - power, extra, NOTHING, candidate) for extra in range(power + 1, P)]
    for low, high in _hypercube(power):
        knows_both = low < high - low  # the panel's own row, and whoever met it
        met.append(Meeting(low, high, both if knows_both else candidate, candidate))
    met += [Meeting(power + a, power + b, row, NOTHING) for a, b, _ in _tree(P - power)]
    met += [Meeting(extra - power, extra, candidate, NOTHING) for extra in range(power, P)]
    return tuple(met)


def _hypercube(power: int) -> Iterator[tuple[int, int]]:
    """The pairs of ranks, among a power of two, that exchange: at distance 1, then 2, then 4,
    ..."""
    step = 1
    while step < power:
        yield from ((low, low + step) for low in range(power) if not low & step)
        step *= 2


def _tree(count: int) -> Iterator[tuple[int, int, int]]:
    """A binary tree from rank 0 of `count`: sender, receiver and the reach of its branch, in the
    order of the steps.
    """
    reach = 1 << max((count - 1).bit_length() - 1, 0)
    while reach:
        for sender in range(0, count - reach, 2 * reach):
            yield sender, sender + reach, reach
        reach //= 2


# ---- the row swaps of the update ----


def binary_exchange(rows: list[int], owner: int) -> list[Meeting]:
    """HPL_pdlaswp00T: U travels from the panel's row of the grid, and the rows that become U travel
    towards it.
    """
    P, width = len(rows), sum(rows)
    power = 1 << (P.bit_length() - 1)
    held = [rows[(owner + place) % P] for place in range(P)]
    held[0] = 0
    u, met = (width, 0), []

    def meet(a: int, b: int, there: Size, back: Size) -> None:
        if there[0] or back[0]:
            met.append(Meeting((owner + a) % P, (owner + b) % P, there, back))

    def workspace(place: int) -> Size:
        return held[place], held[place]  # a number more in each row: where in U it goes

    for extra in range(power, P):
        meet(extra - power, extra, u if extra == power else NOTHING, workspace(extra))
    for extra in range(power + 1, P):
        held[extra - power] += held[extra]
    for low, high in _hypercube(power):
        meet(low, high, u if low < high - low else workspace(low), workspace(high))
        held[low] = held[high] = held[low] + held[high]
    for a, b, _ in _tree(P - power):
        meet(power + a, power + b, u, NOTHING)
    for extra in range(power, P):
        meet(extra - power, extra, u, NOTHING)
    return met


def spread_roll(rows: list[int], owner: int) -> list[Meeting]:
    """HPL_pdlaswp01T: U is spread over the rows of the grid, evened out, and then rolled through
    all of them.
    """
    P = len(rows)
    order, begins = _log_sorted(rows, owner)
    one_way = list(_to_the_right(begins, 0))
    if P > 2:
        evened, begins = _evened(begins)
        one_way += evened
    pieces = np.diff(begins).tolist()
    met = [(a, b, sent, 0) for a, b, sent in one_way]
    met += [(a, b, pieces[there], pieces[back]) for a, b, there, back in _rolled(P)]
    return [
        Meeting(order[a], order[b], (there, 0), (back, 0))
        for a, b, there, back in met
        if there or back
    ]


def _log_sorted(rows: list[int], owner: int) -> tuple[list[int], list[int]]:
    """HPL_logsort: the ranks by their distance in a binary tree, the long pieces early; and the
    start of each piece."""
    P = len(rows)
    order = [(owner + place) % P for place in range(P)]
    pieces = [rows[rank] for rank in order]
    distance = [place.bit_count() for place in range(P)]
    for far in range(1, max(distance) + 1):
        for j in range(1, P):
            if distance[j] == far:
                for i in range(2, P):
                    if far < distance[i] and pieces[j] < pieces[i]:
                        pieces[i], pieces[j] = pieces[j], pieces[i]
                        order[i], order[j] = order[j], order[i]
    return order, np.cumsum([0, *pieces]).tolist()


def _to_the_right(begins: list[int], source: int) -> Iterator[tuple[int, int, int]]:
    """HPL_spreadT, HplRight: the pieces from `source` on go to their owners; sender, receiver and
    rows."""
    count = len(begins) - 1 - source
    for a, b, reach in _tree(count):
        rows = begins[source + min(b + reach, count)] - begins[source + b]
        yield source + a, source + b, rows


def _to_the_left(begins: list[int], source: int) -> Iterator[tuple[int, int, int]]:
    """HPL_spreadT, HplLeft: the mirror image of the right, but a branch is sent one piece more."""
    for a, b, reach in _tree(source + 1):
        place = source - b
        rows = begins[place + 1] - begins[max(place - reach, 0)]
        yield source - a, place, rows


def _evened(begins: list[int]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """HPL_equil: every rank with more than an even part gives the excess to ranks that lack it."""
    P, width = len(begins) - 1, begins[-1]
    least, more = divmod(width, P)
    even = [place * least + min(place, more) for place in range(P + 1)]
    if set(np.diff(begins[:-1]).tolist()) <= {least, least + (more > 0)}:  # the last is not checked
        return [], begins
    met: list[tuple[int, int, int]] = []
    for source in range(P):
        start, end = begins[source], begins[source + 1]
        left, right = start < even[source], even[source + 1] < end
        if end > start and (left or right):
            cuts = [min(max(at, start), end) for at in even]
            if left:
                met += _to_the_left(cuts, source)
            if right:
                met += _to_the_right(cuts, source)
    return met, even


@cache
def _rolled(P: int) -> tuple[tuple[int, int, int, int], ...]:
    """HPL_rollT: in P - 1 steps every rank passes pieces on to its neighbours: (a, b, piece there,
    piece back).
    """
    todo = []
    for place in range(P):
        steps = []
        for k in range(P - 1):
            half, way = k // 2, -1 if (place + k) % 2 else 1
            steps.append(((place + way) % P, (place - way * half) % P))
        todo.append(steps)
    met = []
    while any(todo):
        for place in range(P):
            if todo[place]:
                partner, piece = todo[place][0]
                if todo[partner] and todo[partner][0][0] == place:
                    met.append((place, partner, piece, todo[partner][0][1]))
                    todo[place].pop(0)
                    todo[partner].pop(0)
    return tuple(met)


# ---- the run ----


class Panel(NamedTuple):
    """A panel's step: its `width`, its own row and column of the grid, and what remains beside it.

    `below` are the rows of L over the grid's rows, `right` the updated columns over the grid's
    columns.
    """

    width: int
    row: int
    column: int
    below: np.ndarray
    right: np.ndarray


def panel(N: int, NB: int, P: int, Q: int, first: int, turn: int) -> Panel:
    """The step from row and column `first` on, on the rank whose `turn` it is."""
    left, row, column = N - first, turn % P, turn % Q
    width = min(NB, left)
    below, right = local(left, NB, row, P), local(left + 1, NB, column, Q)
    below[row] -= width
    right[column] -= width
    return Panel(width, row, column, below, right)


def panel_size(step: Panel) -> np.ndarray:
    """How many numbers of a panel are broadcast along each row of the grid: L below and within it,
    pivots, an error flag."""
    return step.width * (step.below + step.width + 1) + 1


def broadcast_hops(Q: int, bcast: str = "1ringM") -> list[tuple[int, int]]:
    """The ring of a broadcast; (from, to), counted from the root.

    In the modified ring (1ringM) the root serves its neighbour and the next rank, and from there on
    each serves the next. In two rings (2ring) the root serves the heads of two halves.
    """
    heads = {"1ring": [1], "1ringM": [1, 2], "2ring": [1, (Q + 1) // 2]}[bcast]
    along = [(rank - 1, rank) for rank in range(1, Q) if rank not in heads]
    return [(0, head) for head in dict.fromkeys(heads) if head < Q] + along


def swaps(
    step: Panel, P: int, NB: int, first: int, pivots: np.ndarray, swap: str = "mix"
) -> Iterator[tuple[np.ndarray, list]]:
    """The row swaps of a panel's update: grid columns, and the meetings in each of them."""
    if P == 1:
        return
    rows = rows_of_u(pivots[first : first + step.width], first, NB, P)
    rows = np.roll(rows, step.row - first // NB % P).tolist()
    least = {"mix": THRESHOLD, "bin-exch": np.inf, "long": 0}[swap]
    for columns, of in (
        (np.flatnonzero(step.right > least), spread_roll),
        (np.flatnonzero((0 < step.right) & (step.right <= least)), binary_exchange),
    ):
        if len(columns):
            yield columns, of(rows, step.row)


# ---- time ----


def panel_flops(step: Panel) -> float:
    """The flops of a panel's matrix products and triangular solves, on the rank with the most."""
    solves, each_row, own_rows = _split_flops(step.width)
    total = solves + each_row * step.below
    total[step.row] += own_rows
    return float(total.max())


@cache
def _split_flops(width: int) -> np.ndarray:
    """The flops within a panel (HPL_pdrpanrlT): of the solves, of the products for each row below
    the panel, and of the products with the panel's own rows."""
    flops = np.zeros(3)

    def split(columns: int, done: int) -> None:
        part, left = -(-(-(-columns // NBMIN)) // NDIV) * NBMIN, columns
        while left and columns > NBMIN:
            inner = min(part, left)
            split(inner, done)
            done, left = done + inner, left - inner
            flops[:] += left * inner * np.array([inner, 2, 2 * (width - done)])

    split(width, 0)
    return flops


class Round(NamedTuple):
    """Meetings at the same time, each of other ranks: a grid column's ranks `a` and `b`, shape
    (meetings,), and what they send `there` and `back`, shape (meetings, 2) as Size.
    """

    a: np.ndarray
    b: np.ndarray
    there: np.ndarray
    back: np.ndarray


def rounds(met: Iterable[Meeting]) -> list[Round]:
    """The meetings in rounds: each as early as its ranks' earlier meetings allow."""
    free: dict[int, int] = {}
    together: dict[int, list[Meeting]] = {}
    for meeting in met:
        turn = max(free.get(meeting.a, 0), free.get(meeting.b, 0))
        free[meeting.a] = free[meeting.b] = turn + 1
        together.setdefault(turn, []).append(meeting)
    return [Round(*map(np.array, zip(*together[turn]))) for turn in sorted(together)]


class Network(Protocol):
    """What messages cost."""

    def times(
        self, there: np.ndarray, back: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        """The times of exchanges at the same time, shape (exchanges, columns, costs).

        `there` and `back` [B] have shape (exchanges, columns); so have the ranks `a` and `b`, which
        are counted along the grid's rows.
        """
        ...


@dataclass(frozen=True)
class Linear:
    """A message of n bytes takes alpha + n beta, wherever the ranks are; both have shape
    (costs,).
    """

    alpha: np.ndarray
    beta: np.ndarray

    def times(
        self, there: np.ndarray, back: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        """As of a Network."""
        return self.alpha + np.maximum(there, back)[..., None] * self.beta


@dataclass(frozen=True)
class Algorithm:
    """HPL's settings BCAST, DEPTH and SWAP: the ring of the broadcast (1ring, 1ringM or 2ring),
    whether the next panel is factored before this one's update is done (0 or 1), and the row swaps
    (mix, bin-exch or long).
    """

    bcast: str = "1ringM"
    depth: int = 0
    swap: str = "mix"


_Exchanges = list[tuple[np.ndarray, list[Round]]]


@lru_cache(maxsize=1)  # `paths` times a run twice
def _steps(
    N: int, NB: int, P: int, Q: int, panels: int, swap: str
) -> list[tuple[Panel, _Exchanges]]:
    """The panels of a run, at most `panels` of them, and their row swaps: grid columns, and the
    rounds in each of them."""
    blocks = -(-N // NB)
    stride = -(-blocks // panels) // 2 * 2 + 1 if blocks > panels else 1
    pivots, steps = drawn_pivots(N), []
    for turn, first in enumerate(range(stride // 2 * NB, N, stride * NB)):
        step = panel(N, NB, P, Q, first, turn)
        met = swaps(step, P, NB, first, pivots, swap)
        steps.append((step, [(columns, rounds(meetings)) for columns, meetings in met]))
    return steps


def time(
    N: int,
    NB: int,
    P: int,
    Q: int,
    network: Network,
    gamma: Number,
    panels: int = PANELS,
    panel_gamma: float | None = None,
    algorithm: Algorithm = Algorithm(),
) -> np.ndarray:
    """The time at which the last rank is done, shape (costs,).

    A flop of a matrix product, or of a triangular solve of several columns, takes `gamma`, shape
    (costs,) or a number. Within a panel only these count, or each flop takes `panel_gamma`. All are
    in one unit of time, and nothing else takes time. At most `panels` panels are computed: of more,
    every third (fifth, ...) stands for its neighbours, too.
    """
    gamma = np.atleast_1d(np.asarray(gamma, float))
    steps = _steps(N, NB, P, Q, panels, algorithm.swap)
    ranks = np.arange(P * Q).reshape(P, Q)
    like = network.times(np.zeros((1, 1)), np.zeros((1, 1)), ranks[:1, :1], ranks[:1, :1])
    clock = np.zeros((P, Q, max(like.shape[-1], len(gamma))))  # when each has finished so far
    hops = broadcast_hops(Q, algorithm.bcast)

    def meet(
        clock: np.ndarray, at: Round, there: np.ndarray, back: np.ndarray, columns: np.ndarray
    ) -> None:
        cost = network.times(there, back, ranks[at.a][:, columns], ranks[at.b][:, columns])
        later = np.maximum(clock[at.a], clock[at.b])
        later += cost
        clock[at.a] = clock[at.b] = later

    @cache
    def pivot_time(width: int, row: int, column: int) -> np.ndarray:
        one = np.zeros((P, 1, clock.shape[-1]))
        for at in rounds(pivot_meetings(P, width)):
            moved = at._replace(a=(at.a + row) % P, b=(at.b + row) % P)
            there, back = (DOUBLE * sent[:, 1:] for sent in (at.there, at.back))
            meet(one, moved, there, back, np.array([column]))
        # The next column's pivot waits for the last rank.
        return (width - 1) * one.max(axis=0) + one[:, 0]

    def factor(step: Panel) -> None:
        """The whole column meets for every pivot."""
        factors = clock[:, step.column]
        work = panel_flops(step) * gamma
        if panel_gamma is not None:
            work = step.width**2 * _most_rows(step) * panel_gamma
        factors[:] = factors.max(axis=0) + work
        factors += pivot_time(step.width, step.row, step.column)

    def pass_on(step: Panel, clock: np.ndarray, waits: bool) -> None:
        """Broadcast a panel; senders wait for receivers unless they compute meanwhile."""
        size, nothing = DOUBLE * panel_size(step)[:, None], np.zeros((P, 1))
        for a, b in hops:
            a, b = (step.column + a) % Q, (step.column + b) % Q
            passed = network.times(size, nothing, ranks[:, [a]], ranks[:, [b]])[:, 0]
            begun = np.maximum(clock[:, a], clock[:, b]) if waits else clock[:, a]
            clock[:, b] = begun + passed
            if waits or a == step.column:  # the root serves one after the other
                clock[:, a] = clock[:, b]

    def update(step: Panel, exchanges: _Exchanges, of: np.ndarray, right: np.ndarray) -> None:
        for columns, met in exchanges:
            columns = columns if len(of) == Q else np.intersect1d(columns, of)
            part, row = clock[:, columns], DOUBLE * right[columns]
            for at in met if len(columns) else ():
                there, back = (
                    sent[:, :1] * row + DOUBLE * sent[:, 1:] for sent in (at.there, at.back)
                )
                meet(part, at, there, back, columns)
            clock[:, columns] = part
        flops = step.width**2 * right[of] + 2.0 * step.width * np.outer(step.below, right[of])
        clock[:, of] += flops[..., None] * gamma

    every = np.arange(Q)
    arrived = clock
    for number, (step, exchanges) in enumerate(steps):
        right = step.right.copy()
        if not algorithm.depth:
            factor(step)
            pass_on(step, clock, waits=True)
        else:
            if not number:
                factor(step)
                arrived = np.where((every == step.column)[:, None], clock, 0.0)
                pass_on(step, arrived, waits=False)
            clock = np.maximum(clock, arrived)
            if number + 1 < len(steps):
                following = steps[number + 1][0]
                ahead = np.where(every == following.column, np.minimum(right, NB), 0)
                update(step, exchanges, every[[following.column]], ahead)
                factor(following)
                arrived = np.where((every == following.column)[:, None], clock, 0.0)
                pass_on(following, arrived, waits=False)
                right -= ahead
        update(step, exchanges, every, right)
    # HPL_pdtrsv: a block of the solution goes up to the next row, and what it takes off there to
    # the next column.
    blocks, block, solve = -(-N // NB), np.full((1, 1), DOUBLE * NB), np.zeros(1)
    if P > 1:
        solve = solve + network.times(block, 0 * block, ranks[:1, :1], ranks[1:2, :1])[0, 0]
    if Q > 1:
        part = block * (Q - 1) / P
        solve = solve + network.times(part, 0 * block, ranks[:1, :1], ranks[:1, 1:2])[0, 0]
    return blocks / len(steps) * clock.max(axis=(0, 1)) + (blocks - 1) * solve


def _most_rows(step: Panel) -> int:
    """The rows of a panel on the rank with the most."""
    rows = step.below.copy()
    rows[step.row] += step.width
    return int(rows.max())


# Grid of costs for latency and bandwidth, in units of a run's computing time; the longest path is
# found for each.
_PARTS = [
    [0.0, *base ** np.arange(*powers)] for base, powers in ((2.0, (-9, 3)), (2**0.5, (-16, 5)))
]
_BESIDE = 1e-7  # step of a difference


@cache
def paths(N: int, NB: int, P: int, Q: int, panels: int = PANELS) -> np.ndarray:
    """The longest paths through a run: the messages, bytes and flops on each, shape (paths, 3).

    Whatever a message, a byte and a flop cost, the run takes as long as the costliest of these
    paths. `time` is the largest of many sums, and these are the sums that are largest somewhere on
    a grid of costs. Between the grid's points the time is too short by less than 0.2 %.
    """
    run, (alpha_unit, beta_unit, flop_unit) = (N, NB, P, Q), np.eye(3)
    costs = time(*run, Linear(alpha_unit, beta_unit), flop_unit, panels)
    unit = np.divide(costs[2], costs[:2], out=np.zeros(2), where=costs[:2] > 0)
    alpha, beta = (part.ravel() * size for part, size in zip(np.meshgrid(*_PARTS), unit))
    steps = _BESIDE * unit
    alphas, betas = [alpha, alpha + steps[0], alpha], [beta, beta, beta + steps[1]]
    network = Linear(np.concatenate(alphas), np.concatenate(betas))
    here, *beside = np.split(time(*run, network, 1.0, panels), 3)
    counts = np.zeros((len(here), 3))
    for column, (there, step) in enumerate(zip(beside, steps)):
        if step:
            counts[:, column] = (there - here) / step
    counts[:, 2] = here - counts[:, 0] * alpha - counts[:, 1] * beta
    return counts
