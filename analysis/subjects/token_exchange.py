"""The ratios of throughputs that the study of an early Beowulf states of its network topologies, judged on token exchanges."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.claims import ledger
from analysis.claims.ledger import Claim
from analysis.claims.quantities import at, quantity
from analysis.statements import Statement, estimated, origin
from analysis.statistics.judgement import REFUSED, UNDECIDED, judge_range
from analysis.subjects.token_points import is_host_bound, places
from analysis.wording import HARD_SPACE, counted, fixed

MBIT = 1e6  # bit/s
TITLES = {
    "local_wire": "switched local wires",
    "local_router": "routed local wires",
    "remote_switch": "switched remote wires",
    "remote_router": "routed remote wires",
    "bonded_switch": "bonded switched wires",
    "bonded_shared": "the original dual net",
}
# The claims of the study that notebook 20 shows, in a few words; their ranges are those of the ledger.
STATED = {
    "beowulf_local_gain": "local wire: about 4 times the dual net",
    "beowulf_switched_gain": "switched remote: about 2 times the dual net",
    "beowulf_routed_gain": "routed remote: about 2 times the dual net",
    "beowulf_bonded_not_better": "bonded and switched: not better than switched",
    "beowulf_local_alike": "switched and routed local wires: alike",
}
SLOWER = tuple(name for name in TITLES if not name.startswith("local"))
# Topologies whose throughputs the study compares.
COMPARED = (
    ("local_wire", "bonded_shared"),
    ("remote_switch", "bonded_shared"),
    ("remote_router", "bonded_shared"),
    ("local_wire", "remote_switch"),
    ("local_wire", "remote_router"),
    ("bonded_switch", "remote_switch"),
    ("local_wire", "local_router"),
)


@dataclass(frozen=True)
class Ratio:
    """The throughput of one topology over another's, with the most pairs and the largest token, at one `rate` [bit/s].

    `about` is what the study says, and `at_least` to `at_most` the ratios that support it, fixed before the run. `rate` is
    None if nothing was run for it; `answer` is then undecided and `reason` names what is missing. `answer` is that of
    `judge_range` for the geometric mean, and refused, whatever the ratio, if the machine limits either topology. `ratios`
    are those of the blocks. `of_bests` is the ratio of the best runs, which the study used. Unknown is NaN.
    """

    about: str
    of: str
    against: str
    at_least: float
    at_most: float
    rate: float | None
    answer: str
    reason: str = ""
    ratios: tuple[float, ...] = ()
    mean: float = np.nan
    interval: tuple[float, float] = (np.nan, np.nan)
    interval_kind: str = ""
    of_bests: float = np.nan

    @property
    def is_at_the_studys_rate(self) -> bool:
        """Whether its wires have the study's rate, or it was not run."""
        return self.rate in (study_rate(), None)


def study_rate() -> float:
    """The rate of the study's wires [bit/s]."""
    return published.facts("beowulf")["wires"]["rate"]["value"]


def ratios(dataset: xr.Dataset, points: xr.Dataset) -> list[Ratio]:
    """Every ratio that the study states, at each rate that was run; `points` is from `token_points`."""
    crowded, planned = points.isel(token_bytes=-1, pairs=-1), places(dataset)
    claims = {claim.id: claim for claim in ledger.load("beowulf").claims}
    return [
        ratio
        for claim, about in STATED.items()
        for ratio in _judged(about, claims[claim], planned, crowded)
    ]


def _judged(
    about: str, claim: Claim, places: Mapping[tuple[str, float], str], at: xr.Dataset
) -> Iterator[Ratio]:
    """A claim's ratio at each rate; `at` are the points with the most pairs and the largest token."""
    of_claim = claim.judged_by[0].partition("/")[2].split("_over_")
    ends = of_claim[0], of_claim[1]
    claimed = {"of": ends[0], "against": ends[1]}
    claimed |= {"at_least": max(claim.at_least, 0.0), "at_most": claim.at_most}
    rates = [{rate for topology, rate in places if topology == end} for end in ends]
    for rate in sorted(rates[0] & rates[1]):
        of, against = both = [at.sel(path=places[end, rate]) for end in ends]
        values = (of.throughput / against.throughput).values
        judged = judge_range(values, claim.at_least, claim.at_most, ratios=True)
        answer, reason = judged.kind, judged.reason
        limited = [end for end, points in zip(ends, both) if is_host_bound(points)]
        if judged.n > 1 and limited:
            answer, reason = (
                REFUSED,
                f"the machine limits {' and '.join(limited)}, and not the wires",
            )
        yield Ratio(
            about,
            **claimed,
            rate=rate,
            answer=answer,
            reason=reason,
            ratios=tuple(values[np.isfinite(values)].tolist()),
            mean=judged.estimate,
            interval=judged.decisive[0],
            interval_kind=judged.decisive[1],
            of_bests=float(of.runs.max() / against.runs.max()) if judged.n else np.nan,
        )
    if not rates[0] & rates[1]:
        missing = [end for end, ran in zip(ends, rates) if not ran]
        reason = f"{' and '.join(missing)} was not run" if missing else "not run at the same rate"
        yield Ratio(about, **claimed, rate=None, answer=UNDECIDED, reason=reason)


def as_the_study_says(dataset: xr.Dataset, ratios: Sequence[Ratio]) -> Iterator[Statement]:
    """Is each ratio as the study says, at each rate? Primary are the first two at the study's rate that compare different
    topologies."""
    source, at_rate = origin(dataset), [one for one in ratios if one.is_at_the_studys_rate]
    first = {one.against: one.about for one in reversed(at_rate)}
    planned = [one.about for one in at_rate if one.about in first.values()][:2]
    for one in ratios:
        at = "" if one.rate is None else f" at {one.rate / MBIT:g} Mbit/s"
        subject = f"{one.about[0].upper()}{one.about[1:]}{at}"
        about = {"words": one.answer, "reason": one.reason}
        about["primary"] = one.about in planned and one.is_at_the_studys_rate
        estimate = one.mean, *one.interval
        kind = f"{one.interval_kind} over the blocks"
        yield estimated(source, subject, "ratio", estimate, len(one.ratios), kind, **about)


def by_best_runs(ratios: Sequence[Ratio]) -> str:
    """The first known ratio by the study's own rule, in a sentence; empty without any."""
    known = [one for one in ratios if one.is_at_the_studys_rate and np.isfinite(one.of_bests)]
    if not known:
        return ""
    return (
        f"By the study's own rule, the best runs, the first ratio is {fixed(known[0].of_bests, 2)}."
    )


def at_machines_limit(ratios: Sequence[Ratio]) -> str:
    """The rates at which the machine was too slow, in a sentence; empty if there are none."""
    limited = [one.rate for one in ratios if one.answer == REFUSED and one.rate is not None]
    if not limited:
        return ""
    rates = " and ".join(f"{rate / MBIT:g}{HARD_SPACE}Mbit/s" for rate in sorted({*limited}))
    return f"At {rates} the machine was too slow for {counted(len(limited), 'ratio')}: these say nothing of the wires."


def left_out(strays: xr.DataArray, points: xr.Dataset) -> str:
    """Whether tokens took the described way, and what was left out, in sentences (Markdown); empty without a reading.

    `strays` and `points` are from `token_points`.
    """
    read, astray = int(strays.notnull().sum()), int((strays == 1).sum())
    excesses, trials = int(points.excess.notnull().sum()), counted(read, "trial")
    sentences = []
    if astray:
        sentences.append(
            f"**{astray} of {trials} are left out**: their tokens took another path than described."
        )
    elif read:
        sentences.append(f"Byte counters confirm the path of the tokens ({trials}).")
    if excesses:
        sentences.append(
            f"**{counted(excesses, 'trial')} left out**: the pairs wrote more than the wires carry."
        )
    return " ".join(sentences)


def ratios_figure(ratios: Sequence[Ratio]) -> Figure:
    """Each ratio in a row, for every block and on average with the t interval that decided, with the range that supports the study."""
    look = style.Look(style.INK, "o", "-")
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.42 * len(ratios))
        beside = {"weight": "bold", "va": "center", "transform": axes.get_yaxis_transform()}
        blocks = {"color": style.FAINT, "markersize": 3.5, "label": "a block"}
        for row, one in enumerate(ratios):
            shaded = {"color": style.MARGIN, "label": "as the study says"}
            axes.barh(row, one.at_most - one.at_least, 0.75, one.at_least, **shaded)
            axes.plot(one.ratios, np.full(len(one.ratios), row - 0.2), look.marker, **blocks)
            ends, label = (one.mean, *one.interval), f"mean, {one.interval_kind}"
            drawing.interval_across(axes, look, row + 0.12, *ends, label)
            axes.text(1.02, row, one.answer, **beside)
        drawing.rows(axes, [one.about.replace(": ", ":\n") for one in ratios])
        axes.set(xlabel="ratio of throughputs [1]", xlim=(0, None))
        drawing.legend_below(figure, axes, 3)
    return figure


def compared(dataset: xr.Dataset, points: xr.Dataset) -> Iterator[Statement]:
    """The topologies' throughputs and round trips at the study's rate, one over another in the same block.

    Throughputs are those with the most pairs and the largest token, refused where the machine limits one of the topologies.
    Round trips are medians of one pair's smallest token, which leave the machine idle.
    """
    path = {
        topology: name for (topology, rate), name in places(dataset).items() if rate == study_rate()
    }
    crowded = points.isel(pairs=-1)
    throughput = crowded.throughput.isel(token_bytes=-1)
    median = at(points.round_trip.sel(quantile=0.5).isel(token_bytes=0), pairs=1)

    def refusal(*topologies: str) -> str:
        if missing := [TITLES[name] for name in topologies if name not in path]:
            return f"not run at the study's rate: {', '.join(missing)}"
        ends = {name: crowded.isel(token_bytes=-1).sel(path=path[name]) for name in topologies}
        bound = [TITLES[name] for name, end in ends.items() if is_host_bound(end)]
        return f"the machine limits {', '.join(bound)}, and not the wires" if bound else ""

    def of(values: xr.DataArray, topology: str) -> xr.DataArray:
        return at(values, path=path.get(topology, ""))

    for one, other in COMPARED:
        ratio, text = (
            of(throughput, one) / of(throughput, other),
            f"{TITLES[one]} over {TITLES[other]}",
        )
        yield quantity(dataset, f"{one}_over_{other}", text, ratio, refused=refusal(one, other))
    others = xr.concat(
        [of(throughput, name) for name in SLOWER], "path", coords="minimal", compat="override"
    )
    fastest = of(throughput, "local_wire") / others.max("path", skipna=False)
    text = f"{TITLES['local_wire']} over the fastest other"
    yield quantity(
        dataset, "local_wire_over_fastest", text, fastest, refused=refusal("local_wire", *SLOWER)
    )
    by_token = of(crowded.throughput, "local_wire")
    text = "the largest token over the next smaller one"
    largest = by_token.isel(token_bytes=-1) / by_token.isel(token_bytes=-2)
    yield quantity(dataset, "largest_token", text, largest, refused=refusal("local_wire"))
    for name in ("remote_switch", "remote_router"):
        text = f"round trip on {TITLES[name]} over that on {TITLES['local_wire']}"
        ratio = of(median, name) / of(median, "local_wire")
        missing = refusal(name, "local_wire") if {name, "local_wire"} - {*path} else ""
        yield quantity(dataset, f"{name}_round_trip", text, ratio, refused=missing)
