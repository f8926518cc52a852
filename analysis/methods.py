"""What the report says of its methods: how often a verdict is wrong, and how it follows the twelve rules."""

from collections.abc import Iterable

import pandas as pd

from analysis.contrasts import Contrast
from analysis.exhibit import Answer, Table
from analysis.statistics.calibration import AT_MOST, FOLDER, load, results, summary
from analysis.statistics.design import Design
from analysis.wording import fixed, listed, number, percent

# Hoefler and Belli's rules in their order, and what is done about each.
RULES = {
    "Base case of a speed-up": "Every ratio says what it is over.",
    "Whole set of results": "What is a subset says why; every trial without a result is counted with its reason.",
    "Means of costs and rates": "Costs have the arithmetic mean, rates the harmonic one; captions say which.",
    "No mean of ratios": "Shares and ratios are averaged as logarithms, within the same blocks.",
    "Deterministic or not": "Simulations repeat themselves and are called so; all else has an interval of a named kind.",
    "Normality": "Single runs are drawn beside every mean; error rates are simulated for the procedure as it is.",
    "Statistical comparison": "Networks are compared within blocks, against a margin that was set before the run.",
    "The right percentile": "Latencies stand with a high percentile; a transfer's time is that of all of its work.",
    "Factors and set-up": "Campaigns, testbeds and machines are in the data; captions name the kind of evidence.",
    "Summing up over processes": "HPL's time is the slowest rank's; flows are timed until the last byte has arrived.",
    "Upper bounds": "Rates stand beside the wire limit, the node's known rate or the peak.",
    "Enough information": "Axes and columns have units. A line is a model or a bound, or joins simulated points; no line joins runs.",
}


def error_rates() -> Table:
    """How often synthetic campaigns with known falls are judged wrongly, by procedure and scatter."""
    settings, rates = load(), results()
    rows = [
        (
            _procedure(row.procedure, settings["procedures"][row.procedure]),
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


def _procedure(name: str, design: Design) -> str:
    """A procedure with its looks and the level of its interval: one-sided errors at both ends."""
    looks = ", ".join(map(str, design.looks))
    return f"{name}: looks after {looks} blocks, {percent(1 - 2 * design.one_sided, 0)} interval"


def error_rates_in_words(judged: Iterable[Contrast]) -> Answer:
    """The worst of them, and the scatter of a run in a campaign of which these statements were judged."""
    rates, full = results(), load()["procedures"]["full"]
    held = rates[rates.procedure == "full"].coverage.min()
    # D holds four runs, of two networks at two numbers of nodes.
    scatters = [one.differences.std("block", ddof=1).item() / 2 for one in judged]
    return Answer(
        f"**At worst {percent(rates.wrong_falls_off.max())} of synthetic campaigns are wrongly called falling off, and "
        f"{percent(rates.wrong_flat.max())} wrongly flat**. The goal is at most {percent(AT_MOST, 0)}. To meet it "
        f"with looks after {listed([*map(str, full.looks)])} blocks, each one-sided test is at {percent(full.one_sided, 0)}: "
        f"hence the intervals of {percent(1 - 2 * full.one_sided, 0)}. With such looks they hold the true fall in at least "
        f"{percent(held)} of synthetic campaigns. The falls of `hpl_scaling` scatter as if each run did by "
        f"{percent(min(scatters))} to {percent(max(scatters))}, less than in any synthetic campaign."
    )


def comparison() -> Table:
    """How often `falloff compare` is wrong in synthetic comparisons, by number of points and blocks: the worst of all others."""
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
    """The worst error rates of `falloff compare`, and how often it finds what it should (Markdown)."""
    rates, settings = pd.read_csv(FOLDER / "comparison.csv"), load()["comparison"]
    one = rates[(rates.truth == "one") & (rates.run_sd == 0.01)]
    power = one.groupby(["points", "old_blocks", "new_blocks"]).found.min()
    few, many = rates.points.min(), rates.points.max()
    return (
        f"**At most {percent(rates.wrongly_changed.max())} of synthetic comparisons call anything unchanged faster or slower, and at most "
        f"{percent(rates.wrongly_same.max())} call anything {percent(settings['margin'], 0)} slower the same**; the goal is at most "
        f"{percent(AT_MOST, 0)} of each. A loss is missed more often: where runs scatter by 1 % (NEW's by up to 2 %) and one point of {many} is "
        f"{percent(settings['slower'], 0)} slower, it is found in {percent(power[many, 6, 3], 0)} of the comparisons of 6 with 3 blocks, in "
        f"{percent(power[many, 6, 6], 0)} with 6 a side and in {percent(power[many, 12, 12], 0)} with 12. A comparison of a single point "
        f"finds it in {percent(power[few, 6, 3], 0)} with 6 and 3 blocks, and in {percent(power[few, 6, 6], 0)} with 6 a side."
    )


def reproduction_in_words() -> Answer:
    """How often a short run is judged wrongly against a reference, and how often it is judged at all."""
    rates, settings = pd.read_csv(FOLDER / "reproduction.csv"), load()["reproduction"]
    wrong = rates[rates.difference == "margin"].reproduced.max()
    none = rates[rates.difference == "none"]
    same = none[none.today_scatter == 1].set_index("run_sd").reproduced
    least, most = same.index.min(), same.index.max()
    return Answer(
        f"**{settings['today_blocks']} blocks suffice where runs scatter by {percent(least)}**: what did not change is then reproduced in "
        f"{percent(same[least], 0)} of synthetic reruns. At {percent(most)} it is in {percent(same[most], 0)}, and nearly all are too short "
        f"to tell. What changed by the margin is called reproduced in at most {percent(wrong)}, and what did not change is called not "
        f"reproduced in at most {percent(none.not_reproduced.max())}."
    )


def reproduction() -> Table:
    """How often a short run is judged wrongly against a reference, by the scatter of both and their true difference."""
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


def rules() -> Table:
    """How the twelve rules are met."""
    rows = [(str(number), rule, how) for number, (rule, how) in enumerate(RULES.items(), 1)]
    return Table(
        "rules",
        ("No.", "Rule", "How it is met"),
        "rll",
        rows,
        "The twelve rules of Hoefler and Belli, and how this report meets them.",
    )
