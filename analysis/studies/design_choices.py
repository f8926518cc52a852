"""Which of several designs are worth their price: cost a node against slowdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.studies.flow_slowdown import Judgement


@dataclass(frozen=True)
class Choice:
    """A network with its cost a node [USD] and slowdown [1] in a pattern and placement.

    `efficient` is whether no other of the same pattern and placement is as cheap and as fast and better in one.
    """

    interconnect: str
    pattern: str
    placement: str
    cost_per_node: float
    slowdown: float
    efficient: bool


def choices(judged: Sequence[Judgement], costs: Mapping[str, float], unslowed: str) -> tuple[Choice, ...]:
    """The choices by pattern and placement, cheapest first: the judged networks and `unslowed`, whose slowdown is 1.

    `costs` are a node's [USD] by network; one whose cost is not known is no choice.
    """
    found = []
    for pattern, placement in dict.fromkeys((it.pattern, it.placement) for it in judged):
        own = [it for it in judged if (it.pattern, it.placement) == (pattern, placement)]
        slowdowns = {unslowed: 1.0, **{it.interconnect: it.slowdown for it in own}}
        places = {name: (costs[name], slowdown) for name, slowdown in slowdowns.items() if name in costs}
        found += [
            Choice(name, pattern, placement, *place, is_efficient(place, places.values()))
            for name, place in sorted(places.items(), key=lambda item: item[1])
        ]
    return tuple(found)


def is_efficient(place: tuple[float, float], places: Iterable[tuple[float, float]]) -> bool:
    """Whether none of the places (cost, slowdown) is at least as low in both and lower in one."""
    cost, slowdown = place
    return not any(other != place and other[0] <= cost and other[1] <= slowdown for other in places)
