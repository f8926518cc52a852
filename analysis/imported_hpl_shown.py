"""Show imported HPL results: the statements about them, the tables, the figure, and all as text for
a terminal."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis import own_statements as state
from analysis.exhibit import Basis, Table
from analysis.imported_hpl import MARGIN, ONE_NODE, Imported
from analysis.quoting import anchor, as_written
from analysis.statements import Statement, evidence_of
from analysis.statistics.intervals import over_blocks
from analysis.statistics.reversals import reversals
from analysis.subjects.hpl_scaling import CALLED, NAMES
from analysis.wording import (
    HARD_SPACE,
    UNKNOWN,
    counted,
    estimate,
    first_sentence,
    fixed,
    number,
    percent,
    percent_range,
)


def statements(study: Imported) -> Iterator[Statement]:
    """The falls of the networks, the node counts that lie outside, what is left on the most nodes, and the laws."""
    count, names = study.count, study.names
    for one in study.falls:
        yield state.fall(
            study.points,
            one.network,
            names[one.network],
            one.verdict,
            one.start,
            one.end,
            (one.before, one.after),
            names.get(one.against, ""),
            count=count,
            differing=study.differing(one),
        )
    if study.efficiency is None:
        yield from _rates(study)
        return
    yield from _outside(study)
    yield from _levels(study)
    yield from _laws(study)


def rests_on(study: Imported) -> str:
    """What the statements rest on: the number of runs, their order, and the margin (Markdown)."""
    has_verdict = any(one.verdict.interval for one in study.falls)
    return state.caveat(study.points, study.best.runs.tolist(), MARGIN if has_verdict else None)


def quoted_notes(study: Imported) -> str:
    """What is missing, as Markdown without the options of the command line that would supply it."""
    return " ".join(re.sub(r"[:;]? \(?--(?:set|map)\b.*$", ".", note) for note in study.notes)


def _outside(study: Imported) -> Iterator[Statement]:
    """The numbers of nodes whose efficiency is lower than on more nodes, beyond the margin and the intervals."""
    for network in filter(None, study.names):
        best = study.best[study.best.interconnect == network].sort_values("x", ascending=False)
        means = best["mean"].tolist()
        for one in reversals(means, best.low.tolist(), best.high.tolist(), MARGIN):
            low, high = (
                counted(int(best.x.iloc[at]), study.count[:-1]) for at in (one.end, one.start)
            )
            sentence = (
                f"**{study.names[network]}'s efficiency on {low} lies outside**: it is {percent(means[one.end])} there and "
                f"{percent(means[one.start])} on {high}. Are these runs comparable?"
            )
            subject = f"{study.names[network]}'s efficiency is lower on {low} than on {high}"
            runs = int(best.runs.iloc[one.end])
            yield state.estimate(
                study.points, sentence, subject, "fall", (one.fall, None, None), runs
            )


def _levels(study: Imported) -> Iterator[Statement]:
    """The efficiency of each network on its most nodes, with its interval."""
    means = over_blocks(study.efficiency, "rate")
    for network in study.names:
        of = means.sel(interconnect=network).dropna("nodes", subset=["mean"])
        if not of.sizes["nodes"] or not network:
            continue
        last = of.isel(nodes=-1)
        most = int(last.nodes.item())
        rate = over_blocks(study.points.rate.sel(interconnect=network, nodes=most), "rate")
        words, name = counted(most, study.count[:-1]), study.names[network]
        sentence = (
            f"On {words}, {name} leaves HPL {number(rate['mean'].item(), 4)} Gflop/s, "
            f"{percent(last['mean'].item())}{{}} of {_whole(study, most)}."
        )
        value = [last[name].item() for name in ("mean", "low", "high")]
        yield state.estimate(
            study.points,
            sentence,
            f"HPL's efficiency on {words}, {name}",
            "share",
            value,
            int(last.blocks),
        )


def _whole(study: Imported, nodes: int) -> str:
    """What the efficiency on so many nodes is a share of, in words."""
    if study.of == ONE_NODE:
        return f"{nodes} times one node's rate"
    return study.of


def _rates(study: Imported) -> Iterator[Statement]:
    """The rate of each network where no efficiency is known."""
    for row in study.best.itertuples():
        where = f"{counted(int(row.x), study.count[:-1])} on {study.names[row.interconnect]}"
        sentence = f"**On {where} HPL computes {number(row.mean, 4)} Gflop/s**{{}}."
        value = (row.mean, row.low, row.high)
        yield state.estimate(
            study.points,
            sentence,
            f"HPL's rate on {where}",
            "rate",
            value,
            row.runs,
            "Gflop/s",
            primary=True,
        )


def _laws(study: Imported) -> Iterator[Statement]:
    """The law that each network follows, and its error on nodes that it did not see."""
    assert study.laws is not None
    seen, most = (study.predicted.attrs[name] for name in ("seen", "most"))
    for network in filter(None, study.names):
        law = study.laws.best(network)
        if law is None:
            continue
        place = (network, law.model.name)
        follows = f"{study.names[network]}'s efficiency follows {CALLED[law.model.name]}"
        if place not in study.predicted.index or not np.isfinite(study.predicted.error[place]):
            value, subject, sentence = (np.nan,) * 3, follows, f"{follows}."
        else:
            row = study.predicted.loc[place]
            value = tuple(row[["error", "low", "high"]])
            words = counted(seen, study.count[:-1])
            subject = f"{follows}; its prediction of {most} {study.count} from fewer"
            sentence = f"{follows}; fitted to at most {words}, it predicts {most} with an error of {percent(row.error)}{{}}."
        runs = int(study.efficiency.sizes["block"])
        yield state.estimate(study.points, sentence, subject, "error", value, runs)


def points_table(study: Imported) -> Table:
    """The efficiency or rate of every point, with its settings and its number of runs."""
    is_share = study.ordinate == "efficiency"
    rows = []
    for row in in_order(study).itertuples():
        mean, low, high = row.mean, row.low, row.high
        rate = mean
        if is_share:
            of_point = study.runs[
                (study.runs.interconnect == row.interconnect) & (study.runs.x == row.x)
            ]
            rate = mean * (of_point.rate / of_point.y).mean()
        grid = f"{row.P:g} x {row.Q:g}" if np.isfinite(row.P) else UNKNOWN
        share = (percent(mean), percent_range((low, high))) if is_share else ()
        settings = (f"{row.N:.0f}", f"{row.NB:g}", grid)
        rows.append(
            (
                study.names[row.interconnect],
                f"{row.x:g}",
                number(rate, 4),
                *share,
                f"{row.runs}",
                *settings,
            )
        )
    heads = ("Efficiency", "95 % t interval") if is_share else ()
    columns = (
        "Network",
        study.count.capitalize(),
        "Rate [Gflop/s]",
        *heads,
        "Runs",
        "N",
        "NB",
        "P x Q",
    )
    caption = "HPL's rates: harmonic means of the runs with the best settings of each point."
    if is_share:
        caption += f" The efficiency is the share of {study.of}."
    align = "lrr" + "rr" * is_share + "rrrl"
    return Table(f"{label(study)}-points", columns, align, rows, caption)


def laws_table(study: Imported) -> Table | None:
    """Every law of every network; None without an efficiency."""
    if study.laws is None:
        return None
    rows, most = [], study.predicted.attrs["most"]
    for network in study.names:
        for law in study.laws.by_level.get(network, ()):
            words = [f"{name} {estimate(*found)}" for name, found in law.parameters().items()]
            error = study.predicted.error.get((network, law.model.name), np.nan)
            rows.append(
                (
                    study.names[network],
                    NAMES[law.model.name],
                    fixed(law.weight, 2) if np.isfinite(law.weight) else UNKNOWN,
                    ", ".join(words) or UNKNOWN,
                    percent(law.farthest) if np.isfinite(law.farthest) else UNKNOWN,
                    percent(error) if np.isfinite(error) else UNKNOWN,
                    law.verdict if not law.refused else "not fitted",
                )
            )
    columns = (
        "Network", "Law", "AICc weight", "Parameters (95 % interval)", "Largest miss", f"Error on {most}", "Verdict",
    )  # fmt: skip
    caption = (
        "The laws of the efficiency over nodes. A law that misses its data, beyond the scatter of the means and 2 %, is not "
        f"drawn. The error on {most} {study.count} is of a fit to at most {study.predicted.attrs['seen']}."
    )
    widths = (9, 15, 7, 33, 8, 9, 12)
    return Table(f"{label(study)}-laws", columns, "llrlrrl", rows, caption, basis(study), widths)


def basis(study: Imported) -> Basis:
    """What figures and tables of the study rest on."""
    unit = "block" if study.repeats == "blocks" else "run"
    return Basis(evidence_of(study.dataset), int(study.best.runs.min()), "95 % t intervals", unit)


def label(study: Imported) -> str:
    """A label for figures and tables: letters, digits and _."""
    return f"{anchor(study.dataset.attrs['campaign']).replace('-', '_')}_{study.dataset.attrs['campaign_hash'][:8]}"


def text(study: Imported) -> str:
    """What was found, for a terminal: the statements, every point, and the notes."""
    lines = [one.sentence for one in statements(study)]
    lines = [
        first_sentence(line) if line.startswith("**Whether") else line.replace("**", "")
        for line in lines
    ]
    lines.append(rests_on(study))
    scale, digits = (100, 1) if study.ordinate == "efficiency" else (1, 2)
    table = in_order(study)
    shown = pd.DataFrame(
        {
            "network": table.interconnect.map(study.names),
            study.count: table.x.astype(int),
            "efficiency [%]" if scale == 100 else "rate [Gflop/s]": (scale * table["mean"]).round(
                digits
            ),
            "95 % t interval": [
                f"{scale * low:.{digits}f} to {scale * high:.{digits}f}"
                if np.isfinite(low)
                else UNKNOWN
                for low, high in table[["low", "high"]].values
            ],
            "runs": table.runs,
            "N": table.N.astype(int),
        }
    )
    lines += ["", shown.to_string(index=False), ""]
    lines += [f"note: {note}" for note in study.notes]
    return quotedless("\n".join(lines))


def quotedless(text: str) -> str:
    """A text for a terminal, without hard spaces."""
    return as_written(text.replace(HARD_SPACE, " "))


def draw(study: Imported) -> Figure:
    """The efficiency [%] or the rate [Gflop/s] over nodes. Small marks are runs; open
    marks are the means of the best settings; lines are the laws that the networks follow.

    Bars are 95 % t intervals over the runs; a single run has none and says so.
    """
    scale = 100 if study.ordinate == "efficiency" else 1
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        for position, (name, short) in enumerate(study.names.items()):
            aside = 2 ** (0.035 * (position - (len(study.names) - 1) / 2))
            look = style.look(name)
            runs = study.runs[study.runs.interconnect == name]
            best = study.best[study.best.interconnect == name].sort_values("x")
            small = {"color": look.color, "alpha": 0.45, "markersize": 3.5, "mew": 0}
            axes.plot(aside * runs.x, scale * runs.y, look.marker, **small)
            axes.plot([], [], look.marker, color=look.color, mfc="white", label=short)
            for point in best.itertuples():
                ends = (scale * end for end in (point.mean, point.low, point.high))
                drawing.interval(axes, name, aside * point.x, *ends)
                if point.runs == 1:
                    place = (aside * point.x, scale * point.mean)
                    above = {"textcoords": "offset points", "ha": "center", "fontsize": 7}
                    axes.annotate("1 run", place, (0, 5), **above)
            law = study.laws and study.laws.best(name)
            if law:
                at = np.geomspace(best.x.min(), best.x.max(), 60)
                if law.model.name == "hpl_messages":
                    at = None
                band = 100 * law.band(at)
                line = {"linestyle": look.line, "color": look.color, "linewidth": 1}
                axes.plot(band.nodes, band["mean"], **line, gid=drawing.MODEL)
        counts = sorted(study.best.x.unique())
        drawing.doubling_axis(axes, drawing.thin_ticks(counts, 1.3), study.count)
        unit = f"efficiency [% of {study.of}]" if scale == 100 else "HPL rate [Gflop/s]"
        lowest = scale * study.runs.y.min()
        axes.set(
            ylabel=unit, ylim=(0 if lowest < 50 or scale == 1 else 10 * int(lowest / 10 - 1), None)
        )
        axes.legend(loc="best")
        return figure


def in_order(study: Imported) -> pd.DataFrame:
    """The best settings, by network as `study.names` has them, then by nodes."""
    place = study.best.interconnect.map({name: rank for rank, name in enumerate(study.names)})
    return study.best.assign(place=place).sort_values(["place", "x"])
