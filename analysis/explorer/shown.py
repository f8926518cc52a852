"""All that follows from a view, in one place: what the page shows, an export repeats and a figure draws."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from analysis.explorer import sources
from analysis.explorer.estimates import Curve, Fitted, curves, default_model, fit, selected
from analysis.explorer.judgement import Judgement, judge
from analysis.explorer.printed import printed
from analysis.explorer.sources import Source
from analysis.explorer.trials import Trials
from analysis.explorer.view import View, first


@dataclass(frozen=True)
class Shown:
    """A view with the trials of its sources, its curves, their fits (none without a model) and its judgements."""

    view: View
    opened: Mapping[str, Trials]
    curves: tuple[Curve, ...]
    fitted: tuple[Fitted, ...]
    judgements: Mapping[str, Judgement]

    @property
    def text(self) -> str:
        """What the page says above the plot, a line for each dataset."""
        return "\n".join(f"{it.sentence} {it.note}".strip() for it in self.judgements.values())

    def printed(self) -> pd.DataFrame:
        """What the sources printed of what is shown: see `printed.printed`."""
        return printed(self.view, self.opened[self.view.sources[0]])

    def points(self) -> pd.DataFrame:
        """A row for each trial shown: where it is from, its levels and value, and if and why it does not count.

        What the sources printed follows, of published evidence, without a trial and with its text as the source.
        """
        factors = [self.view.series, self.view.abscissa, *(name for name, _ in self.view.fixed)]
        parts = []
        for name, trials in self.opened.items():
            rows = selected(self.view, trials)
            columns = ["trial_id", "block", "order", *dict.fromkeys(factors), self.view.ordinate, "counts", "reason"]
            parts.append(
                rows[columns].assign(
                    source=name, evidence=trials.evidence, unit=trials.quantities[self.view.ordinate].unit
                )
            )
        beside = self.printed()
        if beside.empty:
            return pd.concat(parts, ignore_index=True)
        told = beside.rename(columns={"value": self.view.ordinate, "text": "source"}).assign(
            trial_id="", counts=False, reason="printed", evidence="published", unit=parts[0].unit.iloc[0]
        )
        told = told.assign(**{name: level for name, level in self.view.fixed if name not in told})
        runs = [part.astype({"block": "Int64", "order": "Int64"}) for part in parts]
        return pd.concat([*runs, told[[name for name in parts[0] if name in told]]], ignore_index=True)

    def summary(self) -> pd.DataFrame:
        """A row for each point: median, the mean of the quantity's kind, its 95 % t interval over the blocks and n."""
        parts = [
            it.summary.rename_axis(self.view.abscissa)
            .reset_index()
            .assign(**{self.view.series: it.level, "source": it.source, "evidence": self.opened[it.source].evidence})
            for it in self.curves
        ]
        return pd.concat(parts, ignore_index=True)


def show(view: View, opened: Mapping[str, Trials]) -> Shown:
    """Derive all of it; `opened` holds the trials of the view's sources."""
    found = curves(view, opened)
    fitted = tuple(fit(view, it, opened[it.source]) for it in found) if view.model else ()
    judged = {name: judge(view, [it for it in found if it.source == name], opened[name]) for name in view.sources}
    return Shown(view, opened, found, fitted, judged)


def first_of(source: Source) -> Shown:
    """What a dataset's page begins with; raises FalloffError when it cannot be read."""
    opened = {source.name: sources.opened(source)}
    view = first(tuple(opened), opened[source.name])
    return show(replace(view, model=default_model(view)), opened)


def again(view: View) -> Shown:
    """The same from the sources' names alone; raises FalloffError when one of them is gone or cannot be read."""
    return show(view, {name: sources.opened(sources.named(name)) for name in view.sources})
