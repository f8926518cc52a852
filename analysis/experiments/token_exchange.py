"""Pairs of nodes exchange tokens: do the network topologies compare as the early Beowulf's study says?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.attributes import design
from analysis.exhibit import Basis, Exhibit
from analysis.findings import T_INTERVAL, Finding, evidence_of, known, of_estimate, origin
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    judge_range,
)
from analysis.token_points import Place, passage, places, points
from analysis.wire import IPV4_HEADER, TCP_HEADER, message_wire_bytes
from analysis.wording import (
    HARD_SPACE,
    between,
    byte_size,
    counted,
    fixed,
    listed,
    percent,
)

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "token_claims": ("token_exchange", "published/beowulf.toml"),
}
OPENS = {"token_exchange": {"token_bytes": 8192}}

NOT_RUN, HOST_BOUND = "not run", "host-bound"
# The machine limits a topology, and not its wires, when these carry less than the first while its processors are busy
# for more than the second of the time.
LITTLE_CARRIED, NEARLY_BUSY = 0.75, 0.85
MBIT = 1e6  # bit/s
ETHERNET_MTU = 1500  # bytes; IEEE 802.3's, which every wire of the time had
HEADERS = IPV4_HEADER + TCP_HEADER  # timestamps are younger than the study's kernels

# Topologies, in the words of the study.
NOUNS = {
    "shared_wire": "one wire that all share",
    "local_wire": "local wires",
    "local_router": "local wires of the routed mesh",
    "remote_switch": "switched remote wires",
    "remote_router": "routed remote wires",
    "bonded": "bonded local wires",
    "bonded_switch": "bonded, switched remote wires",
    "bonded_shared": "the dual net",
}


@dataclass(frozen=True)
class Reading:
    """A way to count the tokens that the study calls written.

    `framed` is what the printed throughput takes of so many `wires`, with headers, preambles and gaps;
    acknowledgements come on top. Beyond 1 the reading is impossible.
    """

    writes: str
    wires: int
    framed: float


@dataclass(frozen=True)
class Claim:
    """The study's claim that the throughput of one topology over another's lies in a range, at one `rate` [bit/s].

    `rate` is None where nothing was run for it. `kind` is that of `judge_range`, of the geometric-mean ratio; it is
    HOST_BOUND whatever the ratio where the machine limits either topology, and NOT_RUN where a path is missing; `reason`
    names them. `ratios` are those of the blocks, `of_bests` is the ratio of the best runs, as the source took it, and
    `of_wires` that of what the two topologies' wires can carry. Unknown is NaN.
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
    of_wires: float = np.nan
    blocks: int = 0


@dataclass(frozen=True)
class TokenExchange:
    """The campaign's dataset and all that follows from it.

    `points` and `passage` are those of `token_points`; `places` are of its paths. Claims are of the most pairs and the
    largest token.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    places: tuple[Place, ...]
    passage: xr.Dataset
    claims: tuple[Claim, ...]

    @property
    def crowded(self) -> xr.Dataset:
        """The points of the most pairs and the largest token, over (block, path)."""
        return self.points.isel(token_bytes=-1, pairs=-1)

    @property
    def rate(self) -> float:
        """The rate of the study's wires [bit/s]."""
        return published.beowulf()["wires"]["rate"]["value"]

    @property
    def paths(self) -> dict[str, str]:
        """The path of every topology that was run at that rate."""
        return {place.topology: place.path for place in self.places if place.rate == self.rate}

    @property
    def at_rate(self) -> tuple[Claim, ...]:
        """The claims at the rate of the study's wires, and those for which nothing was run."""
        return tuple(claim for claim in self.claims if claim.rate in (self.rate, None))


def analyse(token_exchange: xr.Dataset) -> TokenExchange:
    """Derive all of it; raises FalloffError when there is no token trial."""
    passed = passage(token_exchange)
    laid_out, planned = points(token_exchange, passed.astray), places(token_exchange)
    crowded = laid_out.isel(token_bytes=-1, pairs=-1)
    return TokenExchange(
        dataset=token_exchange,
        points=laid_out,
        places=planned,
        passage=passed,
        claims=tuple(_claims(design(token_exchange)["claims"], planned, crowded)),
    )


def _claims(
    asked: Mapping[str, Mapping[str, Any]], planned: Sequence[Place], at: xr.Dataset
) -> Iterator[Claim]:
    """Judge the design's claims at each rate; `at` are the points of the most pairs and the largest token."""
    paths = {(place.topology, place.rate): place.path for place in planned}
    for about, claim in asked.items():
        of, against = (
            {rate for topology, rate in paths if topology == claim[end]}
            for end in ("of", "against")
        )
        for rate in sorted(of & against):
            both = [at.sel(path=paths[claim[end], rate]) for end in ("of", "against")]
            yield Claim(about, **claim, rate=rate, **_judged(claim, *both))
        if not of & against:
            missing = [claim[end] for end, ran in (("of", of), ("against", against)) if not ran]
            reason = (
                f"{' and '.join(missing)} was not run" if missing else "not run at the same rate"
            )
            yield Claim(about, **claim, rate=None, kind=NOT_RUN, reason=reason)


def _judged(claim: Mapping[str, Any], of: xr.Dataset, against: xr.Dataset) -> dict[str, Any]:
    """The fields of a claim that follow from the throughputs of its two topologies."""
    ratios = (of.throughput / against.throughput).values
    judged = judge_range(ratios, claim["at_least"], claim["at_most"], ratios=True)
    kind, reason = judged.kind, judged.reason
    limited = [claim[end] for end, at in (("of", of), ("against", against)) if is_host_bound(at)]
    if judged.n > 1 and limited:
        kind, reason = HOST_BOUND, f"the machine limits {' and '.join(limited)}, not the wires"
    return {
        "kind": kind,
        "reason": reason,
        "ratios": tuple(ratios[np.isfinite(ratios)].tolist()),
        "ratio": judged.estimate,
        "interval_95": judged.interval_95,
        "of_bests": float(of.runs.max() / against.runs.max()) if judged.n else np.nan,
        "of_wires": float(of.limit / against.limit),
        "blocks": judged.n,
    }


def is_host_bound(here: xr.Dataset) -> bool:
    """Whether the machine and not its wires limits a path; `here` are the points of one path, over (block)."""
    carried = float(mean_over(here.throughput, "block", "rate") / here.limit)
    return carried < LITTLE_CARRIED and float(here.busy.mean()) > NEARLY_BUSY


def readings() -> tuple[Reading, ...]:
    """What the study's throughput takes of its own wires, by whose writes it may count.

    The wires are busses, which both ways share: what both ends wrote crosses them once, what the producers wrote
    crosses them once more on its way back.
    """
    source = published.beowulf()
    token, exchange = source["exchange"]["largest_token"]["value"], source["exchange"]
    wires = min(exchange["most_pairs"]["value"], source["wires"]["mesh"]["value"])
    used = source["throughput"]["local_wire"]["value"] / (
        wires * source["wires"]["rate"]["value"] / 8
    )
    framed = used * message_wire_bytes(token, ETHERNET_MTU, HEADERS) / token
    return Reading("the producer", wires, 2 * framed), Reading("both ends", wires, framed)


def finding(study: TokenExchange) -> str:
    """The study's claims at its own rate, and what was left out, in plain English (Markdown)."""
    compared = [claim for claim in study.at_rate if np.isfinite(claim.ratio)]
    if not compared:
        reason = study.at_rate[0].reason if study.at_rate else "nothing was run at its rate"
        return f"**The study's topologies cannot be compared**: {reason}."
    decided = [claim for claim in compared if claim.kind in (SUPPORTED, CONTRADICTED)]
    kinds = [claim.kind for claim in study.at_rate]
    named = (SUPPORTED, CONTRADICTED, UNDECIDED, HOST_BOUND, NOT_RUN)
    counts = [f"{kinds.count(kind)} {kind}" for kind in named if kind in kinds]
    sentences = [
        *_of_first(study, decided),
        f"The verdicts on the study's {counted(len(kinds), 'statement')}: {listed(counts)}.",
        *(_of_contradicted(claim) for claim in decided[1:] if claim.kind == CONTRADICTED),
        _of_pairs(study),
        _of_limit(study),
        *_of_left_out(study),
    ]
    return " ".join(filter(None, sentences))


def _of_first(study: TokenExchange, decided: Sequence[Claim]) -> Iterator[str]:
    if not decided:
        blocks = counted(study.points.sizes["block"], "block")
        yield f"**Whether the study's ratios are found again is open** ({blocks}, {evidence_of(study.dataset)} evidence)."
        return
    claim = decided[0]
    yield f"**At {_mbit(study.rate)} the {_ratio(claim)}** ({_basis_of(claim)}, {evidence_of(study.dataset)} evidence)."
    yield f"The study says: {_quote(claim)}. The wires alone would give {fixed(claim.of_wires, 2)}."
    filled = [study.crowded.sel(path=study.paths[name]) for name in (claim.of, claim.against)]
    of, against = (percent(known((at.runs / at.limit).median()), 0) for at in filled)
    yield f"Median runs fill {_noun(claim.of)} to {of} and {_noun(claim.against)} to {against}."
    yield f"The study kept its best runs. The best runs here give a ratio of {fixed(claim.of_bests, 2)}."


def _of_contradicted(claim: Claim) -> str:
    return f"The {_ratio(claim)} ({_basis_of(claim)}). The study says: {_quote(claim)}."


def _of_pairs(study: TokenExchange) -> str:
    """How much more the most pairs write than one, on wires of their own and on one that all share."""
    most = int(study.points.pairs[-1])
    throughput = study.points.throughput.isel(token_bytes=-1).reindex(pairs=[1, most])
    alone, crowded = mean_over(throughput, "block", "rate").transpose("pairs", "path")
    factors = {
        name: known((crowded / alone).sel(path=study.paths[name]).item())
        for name in ("local_wire", "shared_wire")
        if name in study.paths
    }
    parts = [
        f"{fixed(factor, 1)} times as much as one pair on {_noun(name)}"
        for name, factor in factors.items()
        if factor
    ]
    return f"{most} pairs write {listed(parts)}." if parts and most > 1 else ""


def _of_limit(study: TokenExchange) -> str:
    limited = [claim for claim in study.claims if claim.kind == HOST_BOUND]
    if not limited:
        return ""
    rates = " and ".join(_mbit(rate) for rate in sorted({claim.rate for claim in limited}))
    return f"At {rates} the machine's processors limit {counted(len(limited), 'ratio')}. These say nothing of the wires."


def _of_left_out(study: TokenExchange) -> Iterator[str]:
    """Whether tokens went where they should, and what was left out."""
    trials = counted(int(study.passage.least.notnull().sum()), "trial")
    astray, excesses = int(study.passage.astray.sum()), int(study.points.excess.notnull().sum())
    if astray:
        yield f"**{astray} of {trials} are left out**: their tokens took another path than described."
    elif study.passage.least.notnull().any():
        yield f"Byte counters confirm the path of the tokens in all {trials}."
    if excesses:
        yield f"**{counted(excesses, 'trial')} left out**: the pairs wrote more than the wires carry."


def _ratio(claim: Claim) -> str:
    ratio = fixed(claim.ratio, 2)
    return f"throughput of {_noun(claim.of)} is {ratio} times that of {_noun(claim.against)}"


def _noun(topology: str) -> str:
    return NOUNS.get(topology, topology.replace("_", " "))


def _quote(claim: Claim) -> str:
    """Such as "about 4 times the dual net"."""
    return claim.about.split(": ")[-1]


def _basis_of(claim: Claim) -> str:
    interval = ""
    if np.isfinite(claim.interval_95[0]):
        interval = f"95 % interval {between(claim.interval_95, 2)}, "
    return interval + counted(claim.blocks, "block")


def findings(study: TokenExchange) -> Iterator[Finding]:
    """Every claim at every rate, as data; planned for are the first against each topology at the study's rate."""
    source = origin("token_exchange", study.dataset)
    planned = {claim.against: claim.about for claim in reversed(study.at_rate)}
    for claim in study.claims:
        at = "" if claim.rate is None else f" at {claim.rate / MBIT:g} Mbit/s"
        statement = f"{claim.about[0].upper()}{claim.about[1:]}{at}"
        ends, is_planned = claim.interval_95, claim.about in planned.values()
        further = {
            "n": claim.blocks,
            "answer": claim.kind,
            "reason": claim.reason,
            "primary": is_planned and claim in study.at_rate,
        }
        yield of_estimate(source, statement, "ratio", "1", claim.ratio, ends, T_INTERVAL, **further)


def figures(study: TokenExchange) -> dict[str, Exhibit]:
    """Ratios beside the study's claims."""
    token, pairs = byte_size(int(study.points.token_bytes[-1])), int(study.points.pairs[-1])
    return {
        "token_claims": Exhibit(
            "token_claims",
            claims_over_ranges(study),
            f"Ratios of throughputs at the study's {_mbit(study.rate)}, {counted(pairs, 'pair')} and tokens of {token}",
            _basis(study, "95 % t intervals of geometric means"),
            "Ratios with intervals beside the ranges that support the study's claims",
            "A claim is supported if the 90 % interval lies in the shaded range, which was decided before the run. A claim is "
            "contradicted if the 95 % interval lies outside. It is host-bound if a topology carries less than "
            f"{percent(LITTLE_CARRIED, 0)} of what its wires can, with the processors busy for over {percent(NEARLY_BUSY, 0)} "
            "of the time.",
            rests_on=FIGURES["token_claims"],
        ),
    }


def claims_over_ranges(study: TokenExchange) -> Figure:
    """Each claim's ratio at the study's rate, of every block and on average, and the range that supports it."""
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
        return figure


def _mbit(rate: float) -> str:
    return f"{rate / MBIT:g}{HARD_SPACE}Mbit/s"


def _basis(study: TokenExchange, intervals: str) -> Basis:
    return Basis(evidence_of(study.dataset), study.points.sizes["block"], intervals)
