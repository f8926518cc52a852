"""The report's section on its methods: how often a verdict is wrong."""

from collections.abc import Iterable

import pandas as pd

from analysis.contrasts import Contrast
from analysis.exhibit import Table
from analysis.statements import Said, say
from analysis.statistics.calibration import AT_MOST, FOLDER, load, results, summary
from analysis.wording import fixed, listed, number, percent


def error_rates() -> Table:
    """How often synthetic campaigns with known falls are judged wrongly, by procedure and
    scatter."""
    settings, rates = load(), results()
    procedures = {
        name: f"{name}: looks after {', '.join(map(str, one.looks))} blocks, {percent(1 - 2 * one.one_sided, 0)} interval"
        for name, one in settings["procedures"].items()
    }
    rows = [
        (
            procedures[row.procedure],
            percent(row.run_sd),
            percent(row.wrong_falls_off),
            percent(row.wrong_flat),
            percent(row.coverage),
            percent(row.decided, 0),
            fixed(row.blocks, 1),
        )
        for row in summary(rates, settings).itertuples()
    ]
    columns = (
        "Procedure",
        "Scatter of a run",
        "Wrongly falls off",
        "Wrongly flat",
        "True fall in the interval",
        "Decided",
        "Blocks",
    )
    caption = (
        f"The procedure on {settings['campaigns']} synthetic campaigns for each of {len(rates)} combinations of procedure, "
        "scatter and true falls. The level of the interval is that of a single look; who may stop at several looks gets less. Wrong claims "
        f"and intervals are the worst of all true falls; decided campaigns and blocks are for a fall of {percent(settings['large_fall'], 0)}."
    )
    return Table("calibration", columns, "lrrrrrr", rows, caption)


def error_rates_in_words(judged: Iterable[Contrast]) -> Said:
    """The worst of these error rates, and the scatter of a run in the campaign whose statements
    were judged."""
    rates, full = results(), load()["procedures"]["full"]
    held = rates[rates.procedure == "full"].coverage.min()
    # D combines four runs: two networks at two node counts.
    scatters = [one.differences.std("block", ddof=1).item() / 2 for one in judged]
    return say(
        f"**At worst {percent(rates.wrong_falls_off.max())} of synthetic campaigns are wrongly called falling off, and "
        f"{percent(rates.wrong_flat.max())} wrongly flat**. The goal is at most {percent(AT_MOST, 0)}. To meet it "
        f"with looks after {listed([*map(str, full.looks)])} blocks, each one-sided test is at {percent(full.one_sided, 0)}: "
        f"hence the intervals of {percent(1 - 2 * full.one_sided, 0)}. With such looks they hold the true fall in at least "
        f"{percent(held)} of synthetic campaigns. The falls of `hpl_scaling` scatter as if each run did by "
        f"{percent(min(scatters))} to {percent(max(scatters))}, less than in any synthetic campaign."
    )


def comparison() -> Table:
    """How often `falloff compare` is wrong in synthetic comparisons, by number of points and
    blocks: the worst case over everything else."""
    rates, settings = pd.read_csv(FOLDER / "comparison.csv"), load()["comparison"]
    keys = ["points", "old_blocks", "new_blocks"]
    wrong = rates.groupby(keys)[["wrongly_changed", "wrongly_same"]].max()
    found = rates[rates.truth == "one"].pivot_table("found", keys, "run_sd", aggfunc="min")
    rows = [
        (str(points), f"{old}, {new}", *map(percent, wrong), *(percent(one, 0) for one in found))
        for (points, old, new), wrong, found in zip(wrong.index, wrong.values, found.values)
    ]
    powers = [f"Found at {percent(run_sd)}" for run_sd in found.columns]
    columns = ("Points", "Blocks", "Wrongly changed", "Wrongly the same", *powers)
    caption = (
        f"`falloff compare` on {settings['campaigns']} synthetic comparisons for each of {len(rates)} combinations of points, blocks, "
        f"scatter and true change, margin {percent(settings['margin'], 0)}. Wrong: in any statement, the worst of all combinations. Found: one "
        f"point that is {percent(settings['slower'], 0)} slower, by a run's scatter; NEW scatters as OLD or twice as much, the worse is shown"
    )
    return Table("calibration-compare", columns, "rlrrrrr", rows, caption)


def comparison_in_words() -> str:
    """The worst error rates of `falloff compare`, and how often it detects a real change
    (Markdown)."""
    rates, settings = pd.read_csv(FOLDER / "comparison.csv"), load()["comparison"]
    one = rates[(rates.truth == "one") & (rates.run_sd == 0.01)]
    power = one.groupby(["points", "old_blocks", "new_blocks"]).found.min()
    few, many = rates.points.min(), rates.points.max()
    slower = percent(settings["slower"], 0)
    return (
        f"**At most {percent(rates.wrongly_changed.max())} of synthetic comparisons call anything unchanged faster or slower, and at most "
        f"{percent(rates.wrongly_same.max())} call anything {percent(settings['margin'], 0)} slower the same**; the goal is at most "
        f"{percent(AT_MOST, 0)} of each. A loss is missed more often: where runs scatter by 1 % (NEW's by up to 2 %) and one point of {many} is "
        f"{slower} slower, it is found in {percent(power[many, 6, 3], 0)} of the comparisons of 6 with 3 blocks, and in "
        f"{percent(power[many, 12, 12], 0)} with 12 a side. A comparison of a single point finds it in {percent(power[few, 6, 3], 0)} with "
        "6 and 3 blocks."
    )


def reproduction() -> Table:
    """How often a short run is judged wrongly against a reference, by the scatter of both and their
    true difference."""
    rates, settings = pd.read_csv(FOLDER / "reproduction.csv"), load()["reproduction"]
    words = {"margin": f"the margin of {percent(load()['margin'], 0)}"}
    rows = [
        (
            percent(row.run_sd),
            number(row.today_scatter),
            words.get(row.difference, row.difference),
            percent(row.reproduced),
            percent(row.not_reproduced),
        )
        for row in rates.itertuples()
    ]
    columns = (
        "Scatter of a run",
        "Today's scatter over it",
        "True difference",
        "Reproduced",
        "Not reproduced",
    )
    caption = f"`falloff reproduce` on synthetic findings with {settings['today_blocks']} blocks today; the rest is too short to tell"
    return Table("calibration-reproduce", columns, "rrlrr", rows, caption)
