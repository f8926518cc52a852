"""What `falloff compare` finds of known changes: nothing changed, one node slower, one link slower.

The changes are planted by calculation in stored runs, from what each trial recorded of itself; all else is as it was run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import comparison, comparison_exhibits, samples
from analysis.comparison import Comparison
from analysis.exhibit import Exhibit, Table
from analysis.findings import Finding, of_estimate, origin
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import counted, estimate, fixed, listed, percent
from runners.record import FalloffError

FIGURES = {
    "compare_unchanged": ("hpl_table1", "hpl_scaling"),
    "compare_slow_node": ("hpl_table1", "hpl_scaling"),
    "compare_slow_link": ("link_micro",),
}
SLOW_NODE, NODE_LOSS = 16, 0.20  # the node, and how much slower it computes
LINK_LOSS = 0.03  # of the first of two links
NOTHING = 1e-4  # a planted change below this is none: what crosses the other link


@dataclass(frozen=True)
class Scenario:
    """A comparison in which it is known what was changed.

    `planted` is by statement the ratio of NEW's speed with the change over the speed without it, 1 where nothing changes.
    """

    name: str
    change: str
    found: Comparison
    planted: tuple[float, ...]

    def with_change(self, is_changed: bool = True) -> list[comparison.Change]:
        """The statements that the planted change touches, or those that it does not."""
        return [
            one
            for one, ratio in zip(self.found.changes, self.planted)
            if (abs(ratio - 1) > NOTHING) == is_changed
        ]


@dataclass(frozen=True)
class Planted:
    """The datasets by campaign, and the scenarios by name: `unchanged`, `slow_node` and `slow_link`."""

    datasets: dict[str, xr.Dataset]
    scenarios: dict[str, Scenario]


def analyse(hpl_table1: xr.Dataset, hpl_scaling: xr.Dataset, link_micro: xr.Dataset) -> Planted:
    """Compare stored runs with each other, with and without planted changes.

    HPL: OLD is `hpl_scaling`, NEW is `hpl_table1`, run on the same emulated cluster at another time. Links: OLD and NEW are
    the blocks of odd and even number of `link_micro`. Raises FalloffError where a campaign has no run of its tool.
    """
    for dataset, tool in ((hpl_table1, "hpl"), (hpl_scaling, "hpl"), (link_micro, "iperf3")):
        if tool not in dataset.runner.values:
            raise FalloffError(f"campaign {dataset.attrs['campaign']} has no run of {tool}")
    old, new, slow = (
        samples.of_dataset(dataset, name)
        for dataset, name in (
            (hpl_scaling, "hpl_scaling"),
            (hpl_table1, "hpl_table1"),
            (with_slow_node(hpl_table1), f"hpl_table1 with node {SLOW_NODE} slower"),
        )
    )
    unchanged, slow_node = (comparison.compare(old, side) for side in (new, slow))
    is_odd = link_micro.block.values % 2 == 1
    halves = link_micro.isel(trial=is_odd), link_micro.isel(trial=~is_odd)
    found = [
        Scenario(
            "unchanged", "nothing was changed", unchanged, tuple(1.0 for _ in unchanged.changes)
        )
    ]
    change = f"node {SLOW_NODE} computes {percent(NODE_LOSS, 0)} slower"
    found.append(Scenario("slow_node", change, slow_node, _planted(unchanged, slow_node)))
    if halves[1].sizes["trial"]:  # a campaign of one block has no other half
        odd, even, slow = (
            samples.of_dataset(dataset, name)
            for dataset, name in (
                (halves[0], "link_micro, odd blocks"),
                (halves[1], "link_micro, even blocks"),
                (with_slow_link(halves[1]), "link_micro, even blocks with a slower link"),
            )
        )
        alike, slow_link = (comparison.compare(odd, side) for side in (even, slow))
        change = f"the first link is {percent(LINK_LOSS, 0)} slower"
        found.append(Scenario("slow_link", change, slow_link, _planted(alike, slow_link)))
    datasets = {"hpl_table1": hpl_table1, "hpl_scaling": hpl_scaling, "link_micro": link_micro}
    return Planted(datasets, {one.name: one for one in found})


def with_slow_node(dataset: xr.Dataset) -> xr.Dataset:
    """HPL's runs as if one node computed `NODE_LOSS` slower, and all others waited for it.

    A run takes longer by what the node was charged for computing, times 1 / (1 - NODE_LOSS) - 1. Runs without that node
    stay as they were.
    """
    charged = dataset.pace_charged.reindex(node=[SLOW_NODE]).isel(node=0, drop=True).fillna(0)
    longer = 1 + charged * (1 / (1 - NODE_LOSS) - 1) / dataset.hpl_time
    return dataset.assign(hpl_rate=(dataset.hpl_rate / longer).assign_attrs(dataset.hpl_rate.attrs))


def with_slow_link(dataset: xr.Dataset) -> xr.Dataset:
    """TCP's goodput as if the first of two links were `LINK_LOSS` slower: less by the share of bytes that crossed it."""
    first, second = (dataset[f"bytes_sent_rail_{link}"].sum("node") for link in (1, 2))
    goodput = dataset.goodput * (1 - LINK_LOSS * (first / (first + second)).fillna(0))
    return dataset.assign(goodput=goodput.assign_attrs(dataset.goodput.attrs))


def _planted(without: Comparison, with_change: Comparison) -> tuple[float, ...]:
    return tuple(
        after.ratio / before.ratio for before, after in zip(without.changes, with_change.changes)
    )


def finding(study: Planted) -> str:
    """What was found of each change, in plain English (Markdown)."""
    return " ".join(_of_scenario(one) for one in study.scenarios.values())


def _of_scenario(one: Scenario) -> str:
    touched, others = one.with_change(), one.with_change(False)
    rest = _answers_of(others)
    if not touched:
        machine = dict((fact[0], fact[1:]) for fact in one.found.facts).get("cpu_model")
        where = f" on another processor ({' and '.join(machine)})" if machine else ""
        return f"**HPL run again{where}: of {counted(len(others), 'statement')} {rest}**."
    worst = min(touched, key=lambda change: change.ratio)
    interval = ""
    if np.isfinite(worst.low):
        interval = f" (95 % t interval {fixed(100 * (worst.low - 1), 1)} to {fixed(100 * (worst.high - 1), 1)} %)"
    rest = f"; of those that it does not touch {rest}" if others else ""
    return (
        f"**Where {one.change}, of {counted(len(touched), 'statement')} that it touches {_answers_of(touched)}**{rest}. "
        f"The largest change is {percent(worst.ratio - 1)} at {worst.what}{interval}."
    )


def _answers_of(changes) -> str:
    """How many have each answer."""
    counts = {
        answer: sum(one.answer == answer for one in changes)
        for answer in (SLOWER, FASTER, UNDECIDED, SAME)
    }
    words = [
        f"{count} {'is' if count == 1 else 'are'} {answer}"
        for answer, count in counts.items()
        if count
    ]
    return listed(words)


def findings(study: Planted) -> Iterator[Finding]:
    """Every statement of every scenario, as data."""
    for one in study.scenarios.values():
        campaign = "link_micro" if one.name == "slow_link" else "hpl_table1"
        source = origin("planted_change", study.datasets[campaign])
        for change in one.found.changes:
            yield of_estimate(
                source,
                f"where {one.change}: {change.what}",
                "speed of NEW over OLD",
                "1",
                change.ratio,
                (change.low, change.high),
                comparison_exhibits.INTERVALS,
                n=min(len(change.old), len(change.new)),
                answer=change.answer,
                reason=change.reason,
            )


def figures(study: Planted) -> dict[str, Exhibit]:
    """The estimation plot of every scenario."""
    return {
        f"compare_{one.name}": comparison_exhibits.figure(
            one.found,
            f"compare_{one.name}",
            f"Where {one.change}: OLD, NEW and their difference",
            FIGURES[f"compare_{one.name}"],
        )
        for one in study.scenarios.values()
    }


def slow_node(study: Planted) -> Table:
    """The node's change as planted and as found."""
    return _table(study.scenarios["slow_node"])


def slow_link(study: Planted) -> Table | None:
    """The link's change as planted and as found; None without a second half."""
    return _table(study.scenarios["slow_link"]) if "slow_link" in study.scenarios else None


def _table(one: Scenario) -> Table:
    rows = [
        (
            change.what,
            fixed(ratio, 3),
            _ratio(change),
            f"{len(change.old)}, {len(change.new)}",
            change.answer,
        )
        for change, ratio in zip(one.found.changes, one.planted)
    ]
    columns = ("Statement", "Planted ratio", "Ratio found", "Blocks of OLD, NEW", "Answer")
    caption = f"Where {one.change}: the ratio of speeds as planted, and as found beside what else differs between the runs"
    label = f"compare-{one.name.replace('_', '-')}-planted"
    return Table(label, columns, "lrlrl", rows, caption, comparison_exhibits.basis(one.found))


def _ratio(change: comparison.Change) -> str:
    return estimate(change.ratio, change.low, change.high, lambda value: fixed(value, 3))


def exit_codes(study: Planted) -> str:
    """What `falloff compare` would return, as a sentence."""
    codes = [
        f"{comparison.EXIT_CODES[one.found.answer]} where {one.change}"
        for one in study.scenarios.values()
    ]
    return f"The command's exit code is {listed(codes)}."
