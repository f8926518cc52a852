"""Does `falloff compare` find known changes: nothing changed, one node slower, one link slower?

The changes are planted by calculation into stored runs, from each trial's own records; everything
else is as it was run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import comparison, samples
from analysis.comparison import Comparison
from analysis.exhibit import Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin
from analysis.statistics.change import FASTER, SLOWER
from analysis.wording import estimate, fixed, listed, percent
from runners.record import FalloffError

FIGURES = {"compare_slow_node": ("hpl_table1", "hpl_scaling")}
SLOW_NODE, NODE_LOSS = 16, 0.20  # the node, and how much slower it computes
LINK_LOSS = 0.03  # on the first of two links
NOTHING = 1e-4  # a smaller planted change counts as none, such as for traffic on the other link
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Scenario:
    """A comparison with a known change in NEW, the `dataset`.

    `planted` has for each statement the ratio of NEW's speed with the change over the speed without
    it, 1 if nothing changes.
    """

    change: str
    dataset: xr.Dataset
    found: Comparison
    planted: tuple[float, ...]

    def statements(self, least: float, most: float = np.inf) -> list[comparison.Change]:
        """The statements whose planted change is at least `least` and less than `most`."""
        both = zip(self.found.changes, self.planted)
        return [one for one, ratio in both if least <= abs(ratio - 1) + _ROUNDING < most]

    @property
    def large(self) -> list[comparison.Change]:
        """The statements changed by the margin or more, which should be found."""
        return self.statements(self.found.margin)

    @property
    def unchanged(self) -> list[comparison.Change]:
        """The statements without a planted change, where nothing should be found."""
        return self.statements(0, NOTHING)


# The scenarios by name: `unchanged`, `slow_node`, and `slow_link` where a campaign of links has two halves.
Study = dict[str, Scenario]


def analyse(hpl_table1: xr.Dataset, hpl_scaling: xr.Dataset, link_micro: xr.Dataset) -> Study:
    """Compare stored runs with each other, with and without planted changes.

    HPL: OLD is `hpl_scaling`, NEW is `hpl_table1`, run on the same emulated cluster at another
    time. Links: OLD and NEW are the odd and the even blocks of `link_micro`. Raises FalloffError if
    a campaign has no run of its tool.
    """
    for dataset, tool in ((hpl_table1, "hpl"), (hpl_scaling, "hpl"), (link_micro, "iperf3")):
        if tool not in dataset.runner.values:
            raise FalloffError(f"campaign {dataset.attrs['campaign']} has no run of {tool}")
    node = f"node {SLOW_NODE} computes {percent(NODE_LOSS, 0)} slower"
    link = f"the first link is {percent(LINK_LOSS, 0)} slower"
    is_odd = link_micro.block.values % 2 == 1
    odd, even = link_micro.isel(trial=is_odd), link_micro.isel(trial=~is_odd)
    study = {
        "unchanged": _scenario("nothing was changed", hpl_scaling, hpl_table1, hpl_table1),
        "slow_node": _scenario(node, hpl_scaling, hpl_table1, with_slow_node(hpl_table1)),
    }
    if even.sizes["trial"]:
        study["slow_link"] = _scenario(link, odd, even, with_slow_link(even))
    return study


def with_slow_node(dataset: xr.Dataset) -> xr.Dataset:
    """HPL's runs as if one node computed `NODE_LOSS` slower, and all others waited for it.

    A run takes longer by the node's computing time multiplied by 1 / (1 - NODE_LOSS) - 1. Runs
    without that node are unchanged.
    """
    charged = dataset.pace_charged.reindex(node=[SLOW_NODE]).isel(node=0, drop=True).fillna(0)
    longer = 1 + charged * (1 / (1 - NODE_LOSS) - 1) / dataset.hpl_time
    return dataset.assign(hpl_rate=dataset.hpl_rate / longer)


def with_slow_link(dataset: xr.Dataset) -> xr.Dataset:
    """TCP's goodput as if the first of two links were `LINK_LOSS` slower, in proportion to the
    share of bytes that crossed it."""
    first, second = (dataset[f"bytes_sent_rail_{link}"].sum("node") for link in (1, 2))
    share = (first / (first + second)).fillna(0)
    return dataset.assign(goodput=dataset.goodput * (1 - LINK_LOSS * share))


def _scenario(change: str, old, new, changed) -> Scenario:
    """OLD beside NEW with the planted change, `changed`, and its effect on each statement."""
    before, without, after = (
        samples.of_dataset(dataset, side)
        for dataset, side in ((old, "OLD"), (new, "NEW"), (changed, "NEW"))
    )
    found, unplanted = comparison.compare(before, after), comparison.compare(before, without)
    both = zip(found.changes, unplanted.changes)
    return Scenario(change, new, found, tuple(one.ratio / other.ratio for one, other in both))


def finding(study: Study) -> str:
    """Whether each change was found, and nothing else, in plain English (Markdown)."""
    margin = percent(study["unchanged"].found.margin, 0)
    large = [one for scenario in study.values() for one in scenario.large]
    others = [one for scenario in study.values() for one in scenario.unchanged]
    found = sum(one.answer == SLOWER for one in large)
    sizes = [abs(ratio - 1) for scenario in study.values() for ratio in scenario.planted]
    largest = percent(max(sizes))
    accused = sum(one.answer in (SLOWER, FASTER) for one in others)
    answer = (
        f"Changes were planted in stored runs by calculation. **`falloff compare` found {found} of {len(large)} statements that were "
        f"changed by {margin} (its margin) to {largest}, and accused {accused or 'none'} of {len(others)} that were not changed.** A statement "
        "is about a point, or a planned ratio of two networks."
    )
    rule = (
        "A change within the margin may be *slower* or *the same*: *the same* where it is shown to lie within, else *slower* where a test "
        "tells it from 0."
    )
    return "\n".join([answer, "", *map(_of_scenario, study.values()), "", rule])


def _of_scenario(one: Scenario) -> str:
    margin = percent(one.found.margin, 0)
    parts = {
        f"changed by {margin} or more": one.large,
        "changed by less": one.statements(NOTHING, one.found.margin),
        "not changed": one.unchanged,
    }
    told = "; ".join(
        f"of {len(group)} {what}: {listed(comparison.counts(group))}"
        for what, group in parts.items()
        if group
    )
    return f"- Where {one.change} (exit code {comparison.EXIT_CODES[one.found.answer]}): {told}."


def findings(study: Study) -> Iterator[Finding]:
    """Every statement of every scenario, as data."""
    for one in study.values():
        source = origin("planted_change", one.dataset)
        for change in one.found.changes:
            statement, answer = f"where {one.change}: {change.what}", change.answer
            speed, n = (
                (change.ratio, change.low, change.high),
                min(len(change.old), len(change.new)),
            )
            yield of_estimate(source, statement, "speed of NEW over OLD", speed, n, answer=answer)


def figures(study: Study) -> dict[str, Exhibit]:
    """The estimation plot of the slow node."""
    ((label, rests_on),) = FIGURES.items()
    one = study["slow_node"]
    shows = f"Where {one.change}: OLD, NEW and their difference"
    return {label: comparison.figure(one.found, label, shows, rests_on)}


def planted(study: Study) -> Table:
    """Every planted change of the margin or more, beside what was found."""
    rows = []
    for one in study.values():
        for change, ratio in zip(one.found.changes, one.planted):
            if change in one.large:
                ends = change.ratio, change.low, change.high
                found = estimate(*ends, lambda value: fixed(value, 3))
                blocks = f"{len(change.old)}, {len(change.new)}"
                rows.append(
                    (one.change, change.what, fixed(ratio, 3), found, blocks, change.answer)
                )
    columns = ("Change", "Statement", "Planted ratio", "Found", "Blocks of OLD, NEW", "Answer")
    caption = (
        "The ratio of speeds where the margin or more was planted, and what was found, which holds all else that differs between the runs "
        f"({study['slow_node'].found.old.evidence} evidence, {T_INTERVAL})"
    )
    return Table("compare-planted", columns, "llrlrl", rows, caption, None, (3, 2, 1, 3, 1, 1))
