"""The twelve rules, each a function of what an exhibit declares and of what is seen of it.

T. Hoefler and R. Belli, Scientific Benchmarking of Parallel Computing Systems, SC'15,
https://doi.org/10.1145/2807591.2807644.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.inference.averages import NAMES
from analysis.rules import seen_text
from analysis.rules.exhibits import Exhibit
from analysis.rules.seen_figure import Drawn
from analysis.rules.seen_text import Said

SEEN, SAID, EXEMPT, BROKEN = "seen", "said", "exempt", "broken"


@dataclass(frozen=True)
class Finding:
    """What a rule finds: `kind` is SEEN where the machine sees that it is met, SAID where the declaration says so,
    EXEMPT where it does not apply, else BROKEN. `what` says why, `mend` what would meet it."""

    kind: str
    what: str = ""
    mend: str = ""


@dataclass(frozen=True)
class Exhibited:
    """All that is known of one exhibit: its declaration, its words, its drawing (None of a table), the `labels` of
    the document, the `runners` of each campaign that was run, the campaigns whose normality was `checked`, and the
    runners of which is said how they take the time (`timed`)."""

    told: Exhibit
    said: Said
    drawn: Drawn | None = None
    labels: frozenset[str] = frozenset()
    runners: Mapping[str, frozenset[str]] = None
    checked: frozenset[str] = frozenset()
    timed: frozenset[str] = frozenset()

    @property
    def scatters(self) -> bool:
        """Whether its values vary from run to run."""
        return not self.told.deterministic and set(self.told.shows) != {"description"}

    @property
    def has_interval(self) -> bool:
        text = self.said.text
        return bool(seen_text.INTERVAL.search(text) and seen_text.LEVEL.search(text))

    @property
    def means(self) -> list[str]:
        """The kind of each mean that is spoken of, in lower case; empty where it is not said."""
        return [found[1].lower() if found[1] else "" for found in seen_text.MEAN.finditer(self.said.text)]


def base_case(it: Exhibited) -> Finding:
    """Rule 1: a speed-up or other ratio says to what, and how much that is."""
    if "ratio" not in it.told.shows:
        return Finding(EXEMPT, "no ratio")
    if not it.told.base:
        return Finding(BROKEN, "a ratio without a base case", "declare `base`, what it is over")
    if it.told.absolute and it.told.absolute not in it.labels and it.labels:
        return Finding(BROKEN, f"its base is not in {it.told.absolute}, which is not there", "name the exhibit")
    return Finding(SEEN if it.told.absolute else SAID, it.told.base)


def whole_set(it: Exhibited) -> Finding:
    """Rule 2: what is a subset of what was run says why."""
    if it.told.subset:
        return Finding(SAID, it.told.subset)
    chosen = seen_text.CHOSEN.search(it.said.text)
    if chosen:
        return Finding(BROKEN, f"it speaks of {chosen[0]!r} and not of why", "declare `subset`, the reason")
    return Finding(EXEMPT, "all that was run is shown")


def means_of_costs_and_rates(it: Exhibited) -> Finding:
    """Rule 3: costs have the arithmetic mean, rates the harmonic one."""
    if set(it.told.shows) == {"description"}:
        return Finding(EXEMPT, "nothing is averaged")
    shown = [kind for kind in ("cost", "rate") if kind in it.told.shows]
    units = it.drawn.units if it.drawn else frozenset()
    is_rate = any(unit.endswith("/s") for unit in units)
    if is_rate and it.told.summary == "mean" and "rate" not in shown:
        return Finding(BROKEN, "an axis is of a rate, which is not declared", 'declare "rate" in `shows`')
    if "" in it.means and "mean" in (it.told.summary or "mean"):
        return Finding(BROKEN, "it speaks of a mean and not of which", "say arithmetic, harmonic or geometric")
    if not shown or it.told.summary != "mean":
        return Finding(EXEMPT, "no mean of costs or rates")
    missing = [NAMES[kind] for kind in shown if NAMES[kind] not in it.means]
    if missing:
        said = f"{' and '.join(shown)} without the {' or '.join(missing)} mean"
        return Finding(BROKEN, said, "average so, and say it")
    return _no_other_mean(it) or Finding(SEEN, f"means: {', '.join(NAMES[kind] for kind in shown)}")


def means_of_ratios(it: Exhibited) -> Finding:
    """Rule 4: ratios are summed up by what they are ratios of, else by the geometric mean."""
    if "ratio" not in it.told.shows or it.told.summary != "mean":
        return Finding(EXEMPT, "no mean of ratios")
    if NAMES["ratio"] not in it.means:
        return Finding(BROKEN, "a mean of ratios that is not geometric", "average their logarithms, and say it")
    return _no_other_mean(it) or Finding(SEEN, "geometric means of ratios")


def _no_other_mean(it: Exhibited) -> Finding | None:
    allowed = {NAMES[kind] for kind in it.told.shows if kind in NAMES}
    other = [mean for mean in it.means if mean not in allowed]
    shows = " and ".join(it.told.shows)
    mend = "average by the kind of the quantity"
    return Finding(BROKEN, f"an {other[0]} mean of a {shows}", mend) if other else None


def intervals(it: Exhibited) -> Finding:
    """Rule 5: deterministic values are called so, others have an interval or are all shown, and say how many."""
    if set(it.told.shows) == {"description"}:
        return Finding(EXEMPT, "nothing was measured")
    if not it.scatters:
        return Finding(SAID, it.told.deterministic)
    if it.drawn and (it.drawn.bars or it.drawn.bands) and not it.has_interval:
        return Finding(BROKEN, "bars or bands of which the caption says no kind", "say the interval's level and kind")
    if not _has_count(it.said):
        return Finding(BROKEN, "no number of repetitions", "say n in the caption or in a column")
    if it.has_interval:
        return Finding(SEEN, "interval and n")
    if it.told.summary == "all":
        return Finding(SEEN, "every value is shown, with n")
    if it.told.summary == "median" and it.told.tail:
        return Finding(SAID, it.told.tail)
    return Finding(BROKEN, "values that scatter, without an interval", "give one and say its level and kind")


def _has_count(said: Said) -> bool:
    return bool(seen_text.COUNTED.search(said.text)) or any(map(seen_text.COUNT_COLUMN.fullmatch, said.columns))


def normality(it: Exhibited) -> Finding:
    """Rule 6: an interval that takes values for normal rests on a check of that."""
    if not it.scatters or not it.has_interval or not _takes_normal(it.said.text):
        return Finding(EXEMPT, "no normal distribution is taken for granted")
    unchecked = [name for name in it.told.of if name not in it.checked] if it.told.of else ["no campaign"]
    if unchecked:
        said = f"t intervals of {', '.join(unchecked)}, whose values nobody tested"
        return Finding(BROKEN, said, "test them with inference.normality, in facts.rules.averaged")
    return Finding(SEEN, "normality of the values that are averaged was tested")


def _takes_normal(text: str) -> bool:
    return any(word in text for word in ("t interval", "t band", "Fieller", "McKay", "z-based", "95 % band"))


def comparison(it: Exhibited) -> Finding:
    """Rule 7: what is compared is compared by intervals."""
    if not it.scatters:
        return Finding(EXEMPT, "no scatter to compare against")
    if seen_text.VERDICT.search(it.said.text) and not it.has_interval and not it.told.bound:
        return Finding(BROKEN, "a judgement without an interval", "show the interval that it rests on")
    if not it.has_interval:
        return Finding(SAID, "every value is shown, nothing is judged")
    return Finding(SEEN, "intervals over the same blocks")


def centre(it: Exhibited) -> Finding:
    """Rule 8: where the slow ones matter, more than the middle is shown."""
    if set(it.told.shows) & {"cost"} and seen_text.WAITING.search(it.said.text):
        if seen_text.PERCENTILE.search(it.said.text):
            return Finding(SEEN, "a high percentile stands beside the middle")
        if not it.told.tail:
            return Finding(BROKEN, "waiting times by their middle only", "show a high percentile, or declare `tail`")
        return Finding(SAID, it.told.tail)
    if it.told.summary == "all":
        return Finding(SEEN, "every value is shown")
    if it.told.summary in ("mean", "median", "fit"):
        return Finding(SAID, it.told.tail or "it is the whole work's time that is of use")
    return Finding(EXEMPT, "nothing is summed up")


def setup(it: Exhibited) -> Finding:
    """Rule 9: the evidence is named, and its campaign's factors, levels and set-up are in the document."""
    if not seen_text.EVIDENCE.search(it.said.text) and set(it.told.shows) != {"description"}:
        return Finding(BROKEN, "it names no kind of evidence", "say emulated, simulated, measured or published")
    absent = [name for name in it.told.of if it.runners and name not in it.runners]
    if absent:
        said = f"it is of {', '.join(absent)}, of which the report has no set-up"
        return Finding(BROKEN, said, "name its campaigns in `of`")
    return Finding(SEEN, "the appendices have the campaign") if it.told.of else Finding(SAID, "its source is named")


def timing(it: Exhibited) -> Finding:
    """Rule 10: how each tool takes the time, synchronises and sums up over processes is said."""
    if set(it.told.shows) <= {"count", "description"} or not it.told.of:
        return Finding(EXEMPT, "no time was taken")
    used = {runner for name in it.told.of for runner in (it.runners or {}).get(name, ())}
    untold = sorted(used - it.timed)
    if untold:
        return Finding(BROKEN, f"nothing says how {', '.join(untold)} takes the time", "add it to the rules' timing")
    return Finding(SEEN, "the appendix says how its tools take the time")


def bound(it: Exhibited) -> Finding:
    """Rule 11: rates stand beside what would be possible."""
    drawn = bool(it.drawn and "bound" in it.drawn.lines)
    if "bound" in it.told.lines and it.drawn and not drawn:
        return Finding(BROKEN, "a bound is declared and none is drawn", 'draw it with gid "bound"')
    if "rate" not in it.told.shows:
        return Finding(SAID if it.told.bound else EXEMPT, it.told.bound or "no rate")
    if not drawn and not it.told.bound:
        return Finding(BROKEN, "rates without an upper bound", "draw it, or declare `bound`, which or why not")
    return Finding(SEEN if drawn else SAID, it.told.bound or "the bound is drawn")


def information(it: Exhibited) -> Finding:
    """Rule 12: axes and columns have units, and only models, bounds and steps join points."""
    if it.said.unitless:
        return Finding(BROKEN, f"columns without a unit: {', '.join(it.said.unitless)}", "say it in their names")
    if it.drawn is None:
        return Finding(SEEN, "units in the columns")
    if it.drawn.bare:
        return Finding(BROKEN, "; ".join(it.drawn.bare), "say the unit in [..], [1] for none")
    if "guide" in it.drawn.lines:
        return Finding(BROKEN, "points are joined without a model", "leave the line out, or draw the model")
    other = sorted(it.drawn.lines - set(it.told.lines))
    if other:
        return Finding(BROKEN, f"undeclared lines: {', '.join(other)}", "give them a gid, and declare `lines`")
    return Finding(SEEN, f"units on the axes; lines: {', '.join(sorted(it.drawn.lines)) or 'none'}")


RULES = {
    1: base_case,
    2: whole_set,
    3: means_of_costs_and_rates,
    4: means_of_ratios,
    5: intervals,
    6: normality,
    7: comparison,
    8: centre,
    9: setup,
    10: timing,
    11: bound,
    12: information,
}
