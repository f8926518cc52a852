"""The calls of a recorded MPI program, as data."""

from typing import NamedTuple

# The numbers in the line of each call.
POINT_TO_POINT = {"send": 4, "recv": 4, "isend": 5, "irecv": 5, "psend": 5}
SENDS = ("send", "isend", "psend")  # the last: a persistent request was started
COLLECTIVES = frozenset(
    "barrier bcast reduce allreduce scan exscan reduce_scatter reduce_scatter_block "
    "gather gatherv allgather allgatherv scatter scatterv alltoall alltoallv alltoallw".split()
)
NON_BLOCKING = {f"i{name}": name for name in COLLECTIVES}
WITH_PARTS = frozenset(
    ("gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "reduce_scatter")
)
# Labels of communicators that lack ranks, or have them in another order.
CHECKSUMS = 1000


class Call(NamedTuple):
    """One call of one rank: the `seconds` computed before it, its `name` and its arguments.

    `partner` is a rank or a collective's root, `label` the communicator (0: MPI_COMM_WORLD), `size`
    what the rank puts in [B], `request` the number of a request that begins or ends, 0 for none.
    `parts` are a collective's parts [B], or the members of a communicator (`comm`).
    """

    seconds: float
    name: str
    partner: int = 0
    label: int = 0
    tag: int = 0
    size: int = 0
    request: int = 0
    parts: tuple[int, ...] = ()

    @property
    def collective(self) -> str:
        """The name of the collective that it is, blocking or not; empty for other calls."""
        return self.name if self.name in COLLECTIVES else NON_BLOCKING.get(self.name, "")

    def message(self, rank: int) -> tuple[int, ...]:
        """Sender, receiver, label and tag of what a rank sends or receives in this call."""
        ends = (rank, self.partner) if self.name in SENDS else (self.partner, rank)
        return (*ends, self.label, self.tag)


Recording = tuple[tuple[Call, ...], ...]  # over ranks
