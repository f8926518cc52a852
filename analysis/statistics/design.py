"""What a campaign fixed before it ran: its margin, statements, looks and control."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.descriptions.campaigns import StatedDesign
from runners.records.plan import WITHOUT_MESSAGES

LEVEL = 0.05  # one-sided, of a single look: a 90 % interval belongs to it


@dataclass(frozen=True)
class PlannedFall:
    """The statement that the rate of level `of` falls against that of level `against`, from `start`
    to `end` nodes.

    `expected` is the answer that the plan expects, empty if it expects none.
    """

    of: Any
    against: Any
    start: int
    end: int
    expected: str = ""

    def __str__(self) -> str:
        return f"{self.of} against {self.against} from {self.start} to {self.end} nodes"


class Design(StatedDesign):
    """A design; what it does not state is None or empty.

    `primary` are the statements in the order of testing; `secondary` are those corrected for each
    other. `looks` are the planned looks, numbers of valid blocks, or of sessions where these end
    after `blocks_a_session` blocks, each at the one-sided level `one_sided`.
    `factors` are the levels of every factor. Imported runs say in `repeats` whether they are
    blocks.
    """

    factors: dict[str, list] = {}
    primary: tuple[PlannedFall, ...]
    secondary: tuple[PlannedFall, ...]
    looks: Sequence[int] = ()
    one_sided: float = LEVEL
    blocks_a_session: int = 0
    repeats: str = ""

    @property
    def pair(self) -> tuple[Any, Any]:
        """The two levels that the first statement compares; raises IndexError if there is no
        statement."""
        return self.primary[0].of, self.primary[0].against

    @property
    def judges_falls(self) -> bool:
        """Whether falls over nodes are judged, as planned."""
        grows = all(fall.start < fall.end for fall in self.primary)
        return bool(self.primary) and self.margin is not None and grows


def design_from(described: Mapping[str, Any]) -> Design:
    """A design from its description in a plan or a dataset, which may be older than these classes
    and is not checked again.

    `primary` is a list of tables, or two levels, which are then compared from `baseline_nodes` to
    the most nodes.
    """
    known = described.keys() & Design.model_fields.keys()
    stated = Design.model_construct(**{name: described[name] for name in known})
    nodes = stated.factors.get("nodes") or [1]
    baseline, most = stated.baseline_nodes, max(nodes)
    primary = tuple(_statements(described.get("primary", []), baseline or min(nodes), most))
    # A single node uses no network.
    alone = 1 if stated.compared == "interconnect" else None
    gate = described.get("negative_control", alone)
    return stated.changed(
        primary=primary,
        secondary=_secondary(primary, stated.control, baseline, most),
        negative_control=gate if gate in nodes else None,
    )


def _statements(primary: list, start: int, end: int) -> Iterator[PlannedFall]:
    if primary and not isinstance(primary[0], Mapping):
        primary = [{"networks": primary, "from": start, "to": end}]
    for table in primary:
        of, against = table["networks"]
        yield PlannedFall(of, against, table["from"], table["to"], table.get("expected", ""))


def _secondary(
    primary: tuple[PlannedFall, ...], control: Any, baseline: int | None, most: int
) -> tuple[PlannedFall, ...]:
    """Every primary pair from the baseline to the most nodes, and each of its levels against the
    control; and every primary pair from the baseline to each node count that a primary statement
    names, as shorter runs have them."""
    if baseline is None or baseline >= most:
        return ()
    pairs = list(dict.fromkeys((fall.of, fall.against) for fall in primary))
    against_control = []
    if control is not None:
        alone = (control, WITHOUT_MESSAGES)
        against_control = [
            (level, control) for pair in pairs for level in pair if level not in alone
        ]
    named = sorted(
        {nodes for fall in primary for nodes in (fall.start, fall.end) if nodes > baseline}
    )
    tested = {(fall.of, fall.against, fall.start, fall.end) for fall in primary}
    places = [(*pair, baseline, most) for pair in (*pairs, *against_control)]
    places += [(*pair, baseline, nodes) for nodes in named for pair in pairs]
    return tuple(PlannedFall(*place) for place in dict.fromkeys(places) if place not in tested)
