"""Does `falloff compare` find known changes: nothing changed, one node slower, one link slower?

The changes are planted by calculation into stored runs, from each trial's own records; everything
else is as it was run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import comparison, samples
from analysis.comparison import Comparison, basis
from analysis.exhibit import Table
from analysis.statements import Statement, estimated, origin
from analysis.statistics.change import FASTER, SLOWER
from analysis.wording import estimate, fixed, level_in_words, listed, percent
from runners.record import FalloffError

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


def scenario(change: str, old: xr.Dataset, new: xr.Dataset, changed: xr.Dataset) -> Scenario:
    """OLD beside NEW with the planted `change`, `changed`, and its effect on each statement.

    Raises FalloffError if the two have no point in common.
    """
    before, without, after = (
        samples.of_dataset(dataset, side)
        for dataset, side in ((old, "OLD"), (new, "NEW"), (changed, "NEW"))
    )
    found, unplanted = comparison.compare(before, after), comparison.compare(before, without)
    both = zip(found.changes, unplanted.changes)
    return Scenario(change, new, found, tuple(one.ratio / other.ratio for one, other in both))


def require_runs(dataset: xr.Dataset, tool: str) -> None:
    """Raise FalloffError if a campaign has no run of this tool."""
    if tool not in dataset.runner.values:
        raise FalloffError(f"campaign {dataset.attrs['campaign']} has no run of {tool}")


def found_and_accused(scenarios: Sequence[Scenario]) -> str:
    """How many of the changed statements were found, and how many of the unchanged ones were accused (Markdown)."""
    margin = percent(scenarios[0].found.margin, 0)
    large = [one for each in scenarios for one in each.large]
    others = [one for each in scenarios for one in each.unchanged]
    found = sum(one.answer == SLOWER for one in large)
    largest = percent(max(abs(ratio - 1) for each in scenarios for ratio in each.planted))
    accused = sum(one.answer in (SLOWER, FASTER) for one in others)
    return (
        f"**`falloff compare` found {found} of {len(large)} statements that were changed by {margin} (its margin) to {largest}, "
        f"and accused {accused or 'none'} of {len(others)} that were not changed.**"
    )


def in_words(one: Scenario) -> str:
    """The answers of a scenario by the size of the planted change, with its exit code, as an item of a list (Markdown)."""
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


def statements(one: Scenario) -> list[Statement]:
    """Is NEW slower or faster than OLD, or the same? One statement for each point and planned ratio."""
    source, made = origin(one.dataset), []
    for change in one.found.changes:
        speed, n = (change.ratio, change.low, change.high), min(len(change.old), len(change.new))
        subject, quantity = f"where {one.change}: {change.what}", "speed of NEW over OLD"
        kind = f"{level_in_words(change.confidence)} t interval over the blocks"
        made.append(estimated(source, subject, quantity, speed, n, kind, words=change.answer))
    return made


def planted(scenarios: Sequence[Scenario]) -> Table:
    """Every planted change of the margin or more, beside what was found."""
    rows = []
    for one in scenarios:
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
        f"({scenarios[0].found.old.evidence} evidence, {basis(scenarios[0].found).intervals})"
    )
    return Table("compare-planted", columns, "llrlrl", rows, caption, None, (3, 2, 1, 3, 1, 1))
