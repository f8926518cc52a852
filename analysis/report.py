"""The report: facts from the data, sentences from a template, figures, and both forms of the document."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import publish, style
from analysis.facts import scaling as scaling_facts
from analysis.facts.published import smith_balance
from analysis.figures import scaling as figures
from analysis.studies.scaling import Scaling, analyse, short_names
from analysis.wording import templates

UNDATED = 0  # s since 1970: a dataset in which nothing ran has no date


@dataclass(frozen=True)
class Report:
    """Where the two forms of the report lie."""

    html: Path
    pdf: Path


def facts(reference: xr.Dataset, today: xr.Dataset | None = None) -> dict:
    """Every number that prose may quote, in base units; see `analysis.facts`.

    `reference` is the campaign whose verdicts are shown, `today` a run to judge against it.
    Raises FalloffError when one of them holds no HPL trial.
    """
    return scaling_facts.collect(analyse(reference, today), today)


def verdicts(known: dict) -> str:
    """The verdicts in words, a Markdown list, from the facts; the report's first page says the same."""
    return templates().get_template("verdicts.md.j2").render(known)


def text(known: dict, left_out: list[str]) -> str:
    """The report's Markdown from its facts; figures are files in `figures/`; `left_out` as for `build`."""
    return templates().get_template("report.md.j2").render(known, left_out=left_out)


def build(reference: xr.Dataset, today: xr.Dataset | None, out: Path, left_out: list[str]) -> Report:
    """Write `falloff.html` and `falloff.pdf` and their figures into the folder `out`.

    `left_out` says, in a line each, what could not be done and the remedy; the first page shows it.
    The same data give the same bytes. Raises FalloffError when a dataset holds no HPL trial.
    """
    scaling = analyse(reference, today)
    style.save_all(draw(scaling), out / "figures")
    markdown = text(scaling_facts.collect(scaling, today), left_out)
    made = Report(out / "falloff.html", out / "falloff.pdf")
    made.html.write_text(publish.to_html(markdown, out), encoding="utf-8")
    made.pdf.write_bytes(publish.to_pdf(markdown, out, _timestamp(reference if today is None else today)))
    return made


def draw(scaling: Scaling) -> dict[str, Figure]:
    """The figures that the data allow, by name: rate, share, falls, links and balance."""
    names = short_names(scaling.dataset)
    shares = {f.interconnect: f.blocks for f in scaling.fits if f.response == "n × share" and f.blocks}
    drawn = {
        "rate": figures.rate_over_nodes(scaling.points, scaling.rate_curves),
        "share": figures.share_over_nodes(scaling.points, shares),
        "falls": figures.falls(scaling.points, scaling.contrasts, scaling.today),
    }
    if len(scaling.links):
        drawn["links"] = figures.link_goodput(scaling.links, names)
    if scaling.balance is not None:
        smith = smith_balance(scaling.dataset)
        drawn["balance"] = figures.balance_over_nodes(
            scaling.balance, {name: pd.Series(cases) for name, cases in smith.items()}, names
        )
    return drawn


def _timestamp(dataset: xr.Dataset) -> int:
    ended = dataset.attrs["ended"]
    return int(datetime.fromisoformat(ended).timestamp()) if ended else UNDATED
