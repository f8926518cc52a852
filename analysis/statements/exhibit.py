"""Figures and tables for notebooks and the report, with captions that stand alone.

A figure or table without unit, n or kind of interval cannot be made. In Jupyter each shows itself
with its caption. The report finds the same in the executed notebook, under `KEY` of the output's
metadata.
"""

import base64
import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from analysis.dataset.contrasts import basis, sessions_by_block
from analysis.dataset.schema import COUNTS, settings
from analysis.quoting import anchor, as_data, as_markdown, as_written, quoted
from analysis.statements import style
from analysis.statements.statement import KEY
from analysis.wording import (
    UNKNOWN,
    counted,
    evidence_in_words,
    kinds,
    number,
    of_sessions,
    percent,
)
from runners.records.record import FalloffError

ELSEWHERE = "measured elsewhere"
WITHOUT_SCATTER = ("simulated", "published", ELSEWHERE)

# A condition of a trial that did not hold; what broke it is a sentence.
_CONDITION = re.compile(r"(\w+) is ([^;]*), (?:kept|in time|keeps up) was asked for")


@dataclass(frozen=True)
class Basis:
    """What a figure or table rests on: the kind of evidence, the number of repetitions, and the
    kind of interval.

    `n` counts `of`, which ran in so many `sessions` (None: not known). A simulation repeats itself
    exactly, and a number that is published or measured elsewhere stands alone, so these have
    neither n nor interval. Of several kinds (`wording.kinds`) the first is what is repeated.
    """

    evidence: str
    n: int | None = None
    intervals: str = ""
    of: str = "block"
    sessions: int | None = None

    def __post_init__(self) -> None:
        first = self.evidence.split(", ")[0]
        if first not in WITHOUT_SCATTER and not (self.n and self.intervals):
            what = f"a figure or table of {self.evidence} evidence"
            raise FalloffError(f"{what} says its n and the kind of its intervals")

    @classmethod
    def of_dataset(cls, dataset: xr.Dataset, intervals: str, judged: int = 0) -> "Basis":
        """The basis of a campaign: all of its blocks, or `judged` of them, with these intervals. A
        simulation, which repeats itself, has none of these."""
        evidence = dataset.falloff.evidence
        if evidence in WITHOUT_SCATTER:
            return cls(evidence)
        n = judged or block_count(dataset)
        n, of, sessions = basis(sessions_by_block(dataset), n)
        return cls(evidence, n, intervals, of, sessions)

    def __str__(self) -> str:
        n = f"n = {counted(self.n, self.of)}{of_sessions(self.sessions)}" if self.n else ""
        kind = ELSEWHERE if self.evidence == ELSEWHERE else evidence_in_words(self.evidence)
        return ", ".join(filter(None, (kind, n, self.intervals)))


@dataclass(frozen=True)
class Exhibit:
    """A figure. `label` names it and its file; `shows` and `marks` are its caption around the
    basis; `alt` is for readers who cannot see it.

    `rests_on` are the campaigns, and the files of data/, that it draws. Raises FalloffError if an
    axis has no unit.
    """

    label: str
    figure: Figure
    shows: str
    basis: Basis
    alt: str
    marks: str = ""
    rests_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if faults := _axes_without_unit(self.figure):
            raise FalloffError(f"figure {self.label}: {'; '.join(faults)}")

    @property
    def campaigns(self) -> tuple[str, ...]:
        """The campaigns that it draws."""
        return tuple(name for name in self.rests_on if "." not in name)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of data/ that it draws."""
        return tuple(name for name in self.rests_on if "." in name)

    @property
    def caption(self) -> str:
        """The caption as Markdown."""
        return f"{self.shows} ({self.basis}). {self.marks}".strip()

    @property
    def markdown(self) -> str:
        """The figure in the report's Markdown; its file is in `figures/`."""
        about = f'#fig:{self.label.replace("_", "-")} alt="{escape(self.alt)}"'
        return f"![{self.caption}](figures/{self.label}.svg){{{about}}}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        svg = style.svg(self.figure)
        picture = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
        alt, caption = escape(as_written(self.alt)), escape(as_written(self.caption))
        look = "width:100%;max-width:900px;background:white"
        html = f'<img alt="{alt}" src="{picture}" style="{look}"><p><em>{caption}</em></p>'
        about = {"markdown": self.markdown, "label": self.label, "rests_on": list(self.rests_on)}
        return {"text/html": html, "image/svg+xml": svg}, {KEY: about}


def figure(
    label: str,
    drawn: Figure,
    shows: str,
    alt: str,
    of: xr.Dataset,
    intervals: str = "95 % t intervals",
    marks: str = "",
    blocks: int = 0,
    beside: Sequence[xr.Dataset | str | None] = (),
    basis: Basis | None = None,
) -> Exhibit:
    """A figure for a notebook's cell, with its caption: what it `shows`, what it rests on, and how
    to read its `marks`.

    It draws the campaign `of`, all its blocks or `blocks` of them, and what lies `beside` it:
    further campaigns, or files of data/ by name. A `basis` replaces that of the campaign's blocks,
    as of runs that are none; without one it names the kinds of evidence of all campaigns. Raises
    FalloffError if an axis has no unit.
    """
    from matplotlib import pyplot as plt

    plt.close(drawn)  # seaborn's figures are pyplot's, which Jupyter would show a second time
    drawn_from = [item for item in (of, *beside) if item is not None]
    names = (item if isinstance(item, str) else item.attrs["campaign"] for item in drawn_from)
    rests_on = tuple(dict.fromkeys(names))
    if basis is None:
        basis = Basis.of_dataset(of, intervals, blocks)
        of_all = (item.falloff.evidence for item in drawn_from if not isinstance(item, str))
        basis = replace(basis, evidence=kinds(*of_all))
    return Exhibit(label_of(label, of), drawn, shows, basis, alt, marks, rests_on)


def label_of(name: str, dataset: xr.Dataset) -> str:
    """The label of a figure or table of a dataset. A report may show several imports: theirs end
    with the digest.
    """
    ending = f"_{dataset.attrs['campaign_hash'][:8]}"
    return name.removesuffix(ending) + ending if dataset.falloff.is_imported else name


@dataclass(frozen=True)
class Table:
    """A table of text: `columns` are its headings, with units; `align` has one letter per column
    (l, r); `rows` are its cells.

    `caption` says what it shows; `basis` says what it rests on, None if the rows say so themselves.
    `widths` are the relative widths of columns in which text wraps; without them columns are as
    wide as their content. A table in the `box` "long" may continue on the next page, and
    one in "screen" is in HTML alone.
    """

    label: str
    columns: Sequence[str]
    align: str
    rows: Iterable[Sequence[str]]
    caption: str
    basis: Basis | None = None
    widths: Sequence[int] = ()
    box: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        if wrong := [row for row in (self.align, *self.rows) if len(row) != len(self.columns)]:
            raise FalloffError(
                f"table {self.label}: not {len(self.columns)} columns in {wrong[0]!r}"
            )

    @property
    def full_caption(self) -> str:
        """The caption with the basis, as Markdown."""
        basis = f" ({self.basis})" if self.basis else ""
        return f"{self.caption.removesuffix('.')}{basis}."

    @property
    def body(self) -> str:
        """Headings and rows as a Markdown table."""
        rule = [":--" if letter == "l" else "--:" for letter in self.align]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.columns, rule, *self.rows))

    @property
    def markdown(self) -> str:
        """The table in the report's Markdown."""
        widths = f' widths="{" ".join(map(str, self.widths))}"' if self.widths else ""
        table = f"{self.body}\n\nTable: {self.full_caption} {{#tbl:{anchor(self.label)}{widths}}}"
        return f"::: {self.box}\n\n{table}\n\n:::" if self.box else table

    def save(self, folder: Path) -> None:
        """Write it as CSV into a folder, named by its label."""
        with (folder / f"{self.label}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(as_data([self.columns, *self.rows]))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        shown = as_markdown(f"{self.body}\n\n*{self.full_caption}*")
        return {"text/markdown": shown}, {KEY: {"markdown": self.markdown}}


def _axes_without_unit(figure: Figure) -> list[str]:
    """Each axis whose label has no unit in brackets and is no count."""
    labels = [axis.get_label_text() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    if not any(labels):
        return ["no axis has a label"]
    return [
        f"axis {label!r} has no unit in brackets"
        for label in dict.fromkeys(labels)
        if label
        and not re.search(r"\[[^]]+\]", label)
        and not label.split(" ")[-1].startswith((*COUNTS, "ranks", "processes"))
    ]


def planned(dataset: xr.Dataset, titles: Mapping[str, str] | None = None) -> Table:
    """A small table of what a campaign varies, measures and repeats; `titles` replace the names of
    levels."""
    design, names = dataset.falloff.design, dataset.falloff.names | dict(titles or {})
    factors, campaign = design.factors, quoted(dataset.attrs["campaign"])
    rows = [(quoted(name.replace("_", " ")), _levels(factors[name], names)) for name in factors]
    trials = counted(math.prod(map(len, factors.values())), "trial")
    rows.append(
        ("repeats", f"{counted(block_count(dataset), 'block')} of {trials} in random order")
    )
    if design.margin:
        rows.append(("margin, set before the run", percent(design.margin, 0)))
    if differing := dataset.falloff.differing_sessions:
        rows.append(("its sessions differ in", differing))
    caption = f"Campaign `{campaign}`: what it varies and how often it repeats that."
    label = f"{campaign.replace('_', '-')}-plan"
    return Table(label, ("Varied", "Levels"), "ll", rows, caption)


def setting_table(dataset: xr.Dataset) -> Table:
    """A table of what a campaign planned, or of the values of each setting of imported runs."""
    if not dataset.falloff.design.repeats:
        return planned(dataset)
    rows, chosen = [], dataset.falloff.points
    chosen = chosen.isel(trial=chosen.status.values == "ok")
    for name in settings():
        levels = [it for it in chosen[name].values.tolist() if it == it and it != ""]
        if name == "interconnect":
            words = list(chosen.falloff.names_by_rate(levels).values())
        else:
            words = list(map(_setting, dict.fromkeys(levels)))
        if words:
            more = f" and {len(words) - 8} more" if len(words) > 8 else ""
            rows.append((quoted(name.replace("_", " ")), ", ".join(words[:8]) + more))
    files = len(set(dataset.file.values.tolist()))
    caption = f"The settings of the runs in {counted(files, 'file')}."
    rows = rows or [(UNKNOWN, UNKNOWN)]
    return Table(label_of("settings", dataset), ("Setting", "Values"), "ll", rows, caption)


def _setting(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    return f"{value:.0f}" if value == int(value) else number(value, 6).rstrip("0").rstrip(".")


def block_count(dataset: xr.Dataset) -> int:
    """The number of blocks in which points of the design were run."""
    return len(set(dataset.block.values[dataset.role == "point"].tolist()))


def without_result(dataset: xr.Dataset) -> Table | None:
    """A table of every trial of a campaign without a result, and why; None if all have one."""
    failed = dataset.isel(trial=dataset.status.values != "ok")
    if not failed.sizes["trial"]:
        return None
    names, campaign = dataset.falloff.names, quoted(dataset.attrs["campaign"])
    read = [failed[it].values.tolist() for it in ("trial_id", "runner", "interconnect", "reason")]
    rows = [
        (
            quoted(trial),
            quoted(tool),
            _levels([network], names),
            quoted(_CONDITION.sub(r"\1: \2", reason)),
        )
        for trial, tool, network, reason in zip(*read)
    ]
    total = counted(dataset.sizes["trial"], "trial")
    caption = f"Campaign `{campaign}`: {len(rows)} of {total} have no result."
    columns = ("Trial", "Tool", "Network", "Reason")
    return Table(f"{campaign.replace('_', '-')}-failed", columns, "llll", rows, caption)


def _levels(levels: Sequence, names: Mapping) -> str:
    called = [names.get(level) or _level(level) for level in levels]
    return ("; " if any("," in name for name in called) else ", ").join(called)


def _level(level: Any) -> str:
    if isinstance(level, bool):
        return "yes" if level else "no"
    return quoted(str(level).replace("_", " "))
