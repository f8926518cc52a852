"""Pairs of nodes exchange tokens: do the network topologies compare as the early Beowulf study
says?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, published, style
from analysis.attributes import design
from analysis.statements import WORDS, Statement, estimated, interval_in_words, origin, resting_on
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED, judge_range
from analysis.token_points import astray, places, points
from analysis.wording import (
    HARD_SPACE,
    between,
    byte_size,
    counted,
    fixed,
    listed,
    paragraphs,
    percent,
)

# The campaigns and files of data/ behind each figure.
FIGURES = {"token_claims": ("token_exchange", "published/beowulf.toml")}
OPENS = {"token_exchange": {"token_bytes": 8192}}

NOT_RUN, HOST_BOUND = "not run", "host-bound"
# The machine, not the wires, limits a topology if the wires carry less than the first share of their limit while the
# processors are busy for more than the second share of the time.
LITTLE_CARRIED, NEARLY_BUSY = 0.75, 0.85
MBIT = 1e6  # bit/s

# Topologies, in the study's words.
NOUNS = {
    "local_wire": "local wires",
    "local_router": "local wires of the routed mesh",
    "remote_switch": "switched remote wires",
    "remote_router": "routed remote wires",
    "bonded_switch": "bonded, switched remote wires",
    "bonded_shared": "the dual net",
}


@dataclass(frozen=True)
class Claim:
    """The study's claim that the throughput of one topology over another's lies in a range, at one
    `rate` [bit/s].

    `rate` is None if nothing was run for it. `kind` is that of `judge_range` for the geometric-mean
    ratio. It is HOST_BOUND, whatever the ratio, if the machine limits either topology, and NOT_RUN
    if a path is missing; `reason` names these. `ratios` are those of the blocks. `of_bests` is the
    ratio of the best runs, which the source used. Unknown is NaN.
    """

    about: str
    of: str
    against: str
    at_least: float
    at_most: float
    rate: float | None
    kind: str
    reason: str = ""
    ratios: tuple[float, ...] = ()
    ratio: float = np.nan
    interval_95: tuple[float, float] = (np.nan, np.nan)
    of_bests: float = np.nan


@dataclass(frozen=True)
class TokenExchange:
    """The campaign's dataset and all results.

    `points`, `places` and `astray` are those of `token_points`. Claims are about the most pairs and
    the largest token.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    places: Mapping[tuple[str, float], str]
    astray: xr.DataArray
    claims: tuple[Claim, ...] = ()

    @property
    def crowded(self) -> xr.Dataset:
        """The points with the most pairs and the largest token, over (block, path)."""
        return self.points.isel(token_bytes=-1, pairs=-1)

    @property
    def rate(self) -> float:
        """The rate of the study's wires [bit/s]."""
        return published.facts("beowulf")["wires"]["rate"]["value"]

    @property
    def paths(self) -> dict[str, str]:
        """The path of every topology that was run at that rate."""
        return {
            topology: path for (topology, rate), path in self.places.items() if rate == self.rate
        }

    @property
    def at_rate(self) -> tuple[Claim, ...]:
        """The claims at the rate of the study's wires, and those without runs."""
        return tuple(claim for claim in self.claims if claim.rate in (self.rate, None))


def analyse(token_exchange: xr.Dataset) -> TokenExchange:
    """Derive all results; raises FalloffError if there is no token trial."""
    strays = astray(token_exchange)
    laid_out, planned = points(token_exchange, strays), places(token_exchange)
    asked, crowded = design(token_exchange)["claims"], laid_out.isel(token_bytes=-1, pairs=-1)
    claims = (
        claim
        for about, claimed in asked.items()
        for claim in _judged(about, claimed, planned, crowded)
    )
    return TokenExchange(token_exchange, laid_out, planned, strays, tuple(claims))


def _judged(
    about: str, claimed: Mapping[str, Any], places: Mapping[tuple[str, float], str], at: xr.Dataset
) -> Iterator[Claim]:
    """Judge a claim of the design at each rate; `at` are the points with the most pairs and the
    largest token."""
    ends = claimed["of"], claimed["against"]
    rates = [{rate for topology, rate in places if topology == end} for end in ends]
    for rate in sorted(rates[0] & rates[1]):
        of, against = both = [at.sel(path=places[end, rate]) for end in ends]
        ratios = (of.throughput / against.throughput).values
        judged = judge_range(ratios, claimed["at_least"], claimed["at_most"], ratios=True)
        kind, reason = judged.kind, judged.reason
        limited = [end for end, points in zip(ends, both) if is_host_bound(points)]
        if judged.n > 1 and limited:
            kind, reason = HOST_BOUND, f"the machine limits {' and '.join(limited)}, not the wires"
        yield Claim(
            about,
            **claimed,
            rate=rate,
            kind=kind,
            reason=reason,
            ratios=tuple(ratios[np.isfinite(ratios)].tolist()),
            ratio=judged.estimate,
            interval_95=judged.interval_95,
            of_bests=float(of.runs.max() / against.runs.max()) if judged.n else np.nan,
        )
    if not rates[0] & rates[1]:
        missing = [end for end, ran in zip(ends, rates) if not ran]
        reason = f"{' and '.join(missing)} was not run" if missing else "not run at the same rate"
        yield Claim(about, **claimed, rate=None, kind=NOT_RUN, reason=reason)


def is_host_bound(here: xr.Dataset) -> bool:
    """Whether the machine, not the wires, limits a path; `here` are the points of one path, over
    (block)."""
    carried = float(mean_over(here.throughput, "block", "rate") / here.limit)
    return carried < LITTLE_CARRIED and float(here.busy.mean()) > NEARLY_BUSY


def finding(study: TokenExchange) -> str:
    """The verdicts on the study's claims at its own rate, and what was left out, in plain English
    (Markdown)."""
    compared = [claim for claim in study.at_rate if np.isfinite(claim.ratio)]
    if not compared:
        reason = study.at_rate[0].reason if study.at_rate else "nothing was run at its rate"
        return f"**The study's topologies cannot be compared**: {reason}."
    decided = [claim for claim in compared if claim.kind in (SUPPORTED, CONTRADICTED)]
    basis = resting_on(study.dataset, study.points.sizes["block"])
    is_open = f"**Whether the study's ratios are found again is open** ({basis})."
    first = _of_first(study, decided[0]) if decided else is_open
    return paragraphs([first, _verdicts(study.at_rate), _of_limit(study), *_of_left_out(study)])


def _of_first(study: TokenExchange, claim: Claim) -> str:
    basis = resting_on(study.dataset, len(claim.ratios), interval_in_words(claim.interval_95, 2))
    return (
        f"**At {_mbit(study.rate)} the throughput of {NOUNS[claim.of]} is {fixed(claim.ratio, 2)} times that of {NOUNS[claim.against]}** "
        f"({basis}). The study says: {claim.about.split(': ')[-1]}, for which {between((claim.at_least, claim.at_most), 1)} was allowed. "
        f"By the study's own rule, the best runs, the ratio is {fixed(claim.of_bests, 2)}."
    )


def _verdicts(claims: Sequence[Claim]) -> str:
    """The claims by verdict, and the ratio of contradicted ones, in one sentence."""
    parts = []
    for kind in (SUPPORTED, CONTRADICTED, UNDECIDED, HOST_BOUND, NOT_RUN):
        names = []
        for claim in (claim for claim in claims if claim.kind == kind):
            ratio = f"{fixed(claim.ratio, 2)} times, {interval_in_words(claim.interval_95, 2)}"
            names.append(
                f"*{claim.about.replace(':', '')}*" + f" ({ratio})" * (kind == CONTRADICTED)
            )
        if names:
            parts.append(
                f"{len(names)} {'is' if len(names) == 1 else 'are'} {kind}: {listed(names)}"
            )
    return f"Of the study's {counted(len(claims), 'statement')} {'; '.join(parts)}."


def _of_limit(study: TokenExchange) -> str:
    limited = [claim.rate for claim in study.claims if claim.kind == HOST_BOUND]
    if not limited:
        return ""
    rates = " and ".join(map(_mbit, sorted({*limited})))
    return f"At {rates} the machine was too slow for {counted(len(limited), 'ratio')}: these say nothing of the wires."


def _of_left_out(study: TokenExchange) -> Iterator[str]:
    """Whether tokens took the described way, and what was left out."""
    read, strays = int(study.astray.notnull().sum()), int((study.astray == 1).sum())
    trials, excesses = counted(read, "trial"), int(study.points.excess.notnull().sum())
    if strays:
        yield f"**{strays} of {trials} are left out**: their tokens took another path than described."
    elif read:
        yield f"Byte counters confirm the path of the tokens in all {trials}."
    if excesses:
        yield f"**{counted(excesses, 'trial')} left out**: the pairs wrote more than the wires carry."


def findings(study: TokenExchange) -> Iterator[Statement]:
    """Every claim at every rate, as data; primary are the first two that compare different
    topologies at the study's rate."""
    source = origin(study.dataset)
    first = {claim.against: claim.about for claim in reversed(study.at_rate)}
    planned = [claim.about for claim in study.at_rate if claim.about in first.values()][:2]
    for claim in study.claims:
        at = "" if claim.rate is None else f" at {claim.rate / MBIT:g} Mbit/s"
        statement = f"{claim.about[0].upper()}{claim.about[1:]}{at}"
        about = {"words": claim.kind if claim.kind in WORDS else UNDECIDED, "reason": claim.reason}
        about["primary"] = claim.about in planned and claim in study.at_rate
        estimate = claim.ratio, *claim.interval_95
        yield estimated(source, statement, "ratio", estimate, len(claim.ratios), **about)


def figures(study: TokenExchange) -> dict[str, exhibit.Exhibit]:
    """Each claim's ratio at the study's rate, for every block and on average, with the supporting
    range."""
    claims, look = study.at_rate, style.Look(style.INK, "o", "-")
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.42 * len(claims))
        beside = {"weight": "bold", "va": "center", "transform": axes.get_yaxis_transform()}
        blocks = {"color": style.FAINT, "markersize": 3.5, "label": "a block"}
        for row, claim in enumerate(claims):
            shaded = {"color": style.MARGIN, "label": "supports the claim"}
            axes.barh(row, claim.at_most - claim.at_least, 0.75, claim.at_least, **shaded)
            axes.plot(claim.ratios, np.full(len(claim.ratios), row - 0.2), look.marker, **blocks)
            ends, label = (claim.ratio, *claim.interval_95), "mean and 95 % interval"
            drawing.interval_across(axes, look, row + 0.12, *ends, label)
            axes.text(1.02, row, claim.kind, **beside)
        drawing.rows(axes, [claim.about.replace(": ", ":\n") for claim in claims])
        axes.set(xlabel="ratio of throughputs [1]", xlim=(0, None))
        drawing.legend_below(figure, axes, 3)
    token, pairs = byte_size(int(study.points.token_bytes[-1])), int(study.points.pairs[-1])
    return exhibit.only(
        FIGURES,
        figure,
        f"Ratios of throughputs at the study's {_mbit(study.rate)}, {counted(pairs, 'pair')} and tokens of {token}",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals of geometric means"),
        "Ratios with intervals beside the ranges that support the study's claims",
        "A claim is supported if the 90 % interval lies in the shaded range, which was decided before the run. A claim is "
        "contradicted if the 95 % interval lies outside. It is host-bound if a topology carries less than "
        f"{percent(LITTLE_CARRIED, 0)} of what its wires can, with the processors busy for over {percent(NEARLY_BUSY, 0)} of the time.",
    )


def _mbit(rate: float) -> str:
    return f"{rate / MBIT:g}{HARD_SPACE}Mbit/s"
