"""What the report says of its methods: how often a verdict is wrong, and how it follows the twelve rules."""

import pandas as pd

from analysis.exhibit import Answer, Table
from analysis.statistics.calibration import AT_MOST, FOLDER, load, results, summary
from analysis.wording import fixed, number, percent

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
    "Enough information": "Axes and columns have units. A line is a model or a bound; no line joins points.",
}


def error_rates() -> Table:
    """How often synthetic campaigns with known falls are judged wrongly, by procedure and scatter."""
    settings, rates = load(), results()
    rows = [
        (
            f"{row.procedure}: looks after {', '.join(map(str, settings['procedures'][row.procedure].looks))}",
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
        "Interval holds",
        "Decided",
        "Blocks",
    )
    caption = (
        f"The procedure on {settings['campaigns']} synthetic campaigns for each of {len(rates)} truths. Wrong claims and "
        f"coverage are the worst of all true falls; decided campaigns and blocks are for a fall of "
        f"{percent(settings['large_fall'], 0)}."
    )
    return Table("calibration", columns, "lrrrrrr", rows, caption)


def error_rates_in_words() -> Answer:
    """The worst of them, and how often a short run is judged wrongly against a reference."""
    rates, settings = results(), load()
    again = pd.read_csv(FOLDER / "reproduction.csv")
    reproduced = again[again.difference == "margin"].reproduced.max()
    refused = again[again.difference == "none"].not_reproduced.max()
    return Answer(
        f"**At worst {percent(rates.wrong_falls_off.max())} of synthetic campaigns are wrongly called falling off, and "
        f"{percent(rates.wrong_flat.max())} wrongly flat**. The goal is at most {percent(AT_MOST, 0)}. "
        f"A short run has {settings['reproduction']['today_blocks']} blocks. If its fall differs from the reference's by the margin, it is "
        f"called reproduced in at most {percent(reproduced)} of the cases. If it does not differ, it is called not reproduced in at most "
        f"{percent(refused)}."
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
        f"`falloff compare` on {settings['campaigns']} synthetic comparisons for each of {len(rates)} truths, margin "
        f"{percent(settings['margin'], 0)}: any statement wrong, the worst of all truths. Found: one point that is "
        f"{percent(settings['slower'], 0)} slower, by a run's scatter. NEW scatters as OLD or twice as much; the worse is shown"
    )
    return Table("calibration-compare", columns, "rlrrrrr", rows, caption)


def comparison_in_words() -> str:
    """The worst error rates of `falloff compare`, and how often it finds what it should (Markdown)."""
    rates, settings = pd.read_csv(FOLDER / "comparison.csv"), load()["comparison"]
    six = rates[(rates.truth == "one") & (rates.old_blocks == 6) & (rates.new_blocks == 6)]
    power = six[(six.run_sd == 0.01) & (six.new_scatter == 1)].found.min()
    return (
        f"**At most {percent(rates.wrongly_changed.max())} of synthetic comparisons call anything unchanged faster or slower, and at most "
        f"{percent(rates.wrongly_same.max())} call anything {percent(settings['margin'], 0)} slower the same**; the goal is at most "
        f"{percent(AT_MOST, 0)} of each. One point that is {percent(settings['slower'], 0)} slower is found in at least {percent(power)}, "
        f"where a side has 6 blocks and runs scatter by 1 %. With 3 blocks a side it is often undecided."
    )


def reproduction() -> Table:
    """How often a short run is judged wrongly against a reference, by the scatter of both and their true difference."""
    rates, settings = pd.read_csv(FOLDER / "reproduction.csv"), load()["reproduction"]
    words = {"none": "none", "margin": "the margin"}
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
        "Today's over it",
        "True difference",
        "Reproduced",
        "Not reproduced",
    )
    caption = (
        f"`falloff reproduce` on synthetic findings with {settings['today_blocks']} blocks today; what is neither is too short "
        "to tell"
    )
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
