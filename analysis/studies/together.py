"""All experiments of one report: their studies, and their verdicts corrected for each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import xarray as xr

from analysis.inference.multiplicity import holm
from analysis.inference.verdict import Verdict
from analysis.studies import (
    agreement,
    beyond,
    blas,
    cost,
    fan_out,
    link_bonding,
    long_path,
    noise,
    paper,
    payload,
    payoff,
    prediction,
    scaling,
    size,
    switch,
    token_exchange,
    top500,
    topology,
)
from analysis.studies.agreement import TwinAgreement
from analysis.studies.beyond import Beyond
from analysis.studies.blas import Blas
from analysis.studies.cost import Cost
from analysis.studies.fan_out import FanOut
from analysis.studies.link_bonding import LinkBonding
from analysis.studies.long_path import LongPath
from analysis.studies.noise import Noise
from analysis.studies.paper import Paper
from analysis.studies.payload import Payload
from analysis.studies.payoff import Payoff
from analysis.studies.prediction import Prediction
from analysis.studies.scaling import Scaling
from analysis.studies.size import Size
from analysis.studies.switch import Switch
from analysis.studies.token_exchange import TokenExchange
from analysis.studies.top500 import Top500
from analysis.studies.topology import Topology

# The datasets of a report and where their stored references are: campaign and testbed.
DATASETS = {
    "hpl_scaling": ("hpl_scaling", "emulated"),
    "hpl_size": ("hpl_size", "emulated"),
    "hpl_noise": ("hpl_noise", "emulated"),
    "hpl_blas": ("hpl_blas", "emulated"),
    "hpl_payload": ("hpl_payload", "emulated"),
    "hpl_paper": ("hpl_paper", "smith"),
    "hpl_sensitivity": ("hpl_sensitivity", "smith"),
    "hpl_contention": ("hpl_contention", "smith"),
    "hpl_beyond": ("hpl_beyond", "smith"),
    "hpl_agreement": ("hpl_agreement", "twin"),
    "hpl_size twin": ("hpl_size", "twin"),
    "tcp_mtu": ("tcp_mtu", "paths"),
    "tcp_cost": ("tcp_cost", "paths"),
    "frame_limits": ("frame_limits", "paths"),
    "packet_sizes": ("packet_sizes", "paths"),
    "long_path": ("long_path", "paths"),
    "long_repeats": ("long_repeats", "paths"),
    "fan_out": ("fan_out", "paths"),
    "token_exchange": ("token_exchange", "beowulf"),
    "link_hpl": ("link_hpl", "rails"),
    "link_micro": ("link_micro", "rails"),
    "topology": ("topology", "nemo"),
    "hpl_topology": ("hpl_topology", "nemo"),
    "token_nodes": ("token_nodes", "emulated"),
    "hpl_surface": ("hpl_surface", "twin"),
}

# What is shown only beside another of them.
BESIDE = {
    "hpl_sensitivity": "hpl_paper",
    "hpl_contention": "hpl_paper",
    "hpl_beyond": "hpl_paper",
    "hpl_agreement": "hpl_scaling",
    "hpl_size twin": "hpl_agreement",
    "tcp_cost": "tcp_mtu",
    "frame_limits": "tcp_mtu",
    "packet_sizes": "tcp_mtu",
    "long_repeats": "long_path",
    "link_micro": "link_hpl",
    "hpl_topology": "topology",
    "token_nodes": "hpl_scaling",
    "hpl_surface": "token_nodes",
}


@dataclass(frozen=True)
class Studies:
    """The study of each experiment that there are data for; every verdict carries Holm's p.

    From `paper` to `cost`, `payoff` and `topology` they are of simulated evidence, which has no scatter and takes no
    part in the correction; neither do those from `switch` to `token_exchange`, of TCP alone, and `prediction`, whose
    statements are estimates. `datasets` are what they are studies of, but for `top500`, which is of published lists, and
    `today` the shorter runs beside them.
    """

    datasets: Mapping[str, xr.Dataset]
    scaling: Scaling | None = None
    size: Size | None = None
    noise: Noise | None = None
    blas: Blas | None = None
    paper: Paper | None = None
    beyond: Beyond | None = None
    agreement: TwinAgreement | None = None
    payload: Payload | None = None
    cost: Cost | None = None
    switch: Switch | None = None
    long_path: LongPath | None = None
    fan_out: FanOut | None = None
    token_exchange: TokenExchange | None = None
    link_bonding: LinkBonding | None = None
    prediction: Prediction | None = None
    payoff: Payoff | None = None
    topology: Topology | None = None
    top500: Top500 | None = None
    today: Mapping[str, xr.Dataset] = field(default_factory=dict)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every verdict of every study, in a fixed order."""
        return (
            *(contrast.verdict for contrast in (self.scaling.contrasts if self.scaling else ())),
            *(level.growth for level in (self.noise.levels if self.noise else ())),
            *((self.blas.claim,) if self.blas else ()),
            *(way.growth for way in (self.link_bonding.hpl.ways if self.link_bonding else ()) if way.growth),
        )


def analyse(
    datasets: Mapping[str, xr.Dataset],
    today: Mapping[str, xr.Dataset] = MappingProxyType({}),
    lists: xr.Dataset | None = None,
) -> Studies:
    """Analyse the datasets, by the names of `DATASETS`, and correct their verdicts within each kind of evidence.

    `today` holds shorter runs of some of them, to be compared with them.
    `lists` are TOP500's, as `top500.lists.read_folder` gives them, be it without a system.
    Raises FalloffError when a dataset holds no trial of its campaign's tool.
    """
    get, now = datasets.get, today.get
    of_scaling = _of(scaling, get("hpl_scaling"), now("hpl_scaling"))
    of_size = _of(size, get("hpl_size"))
    simulated = [data for data in (get("hpl_paper"), get("hpl_beyond")) if data is not None]
    return corrected(
        Studies(
            datasets=datasets,
            scaling=of_scaling,
            size=of_size,
            noise=_of(noise, get("hpl_noise")),
            blas=_of(blas, get("hpl_blas")),
            paper=_of(paper, get("hpl_paper"), get("hpl_sensitivity"), get("hpl_contention"), now("hpl_paper")),
            beyond=_of(beyond, get("hpl_beyond"), get("hpl_paper")),
            agreement=agreement.analyse(of_scaling, get("hpl_agreement"), of_size, get("hpl_size twin"))
            if of_scaling and "hpl_agreement" in datasets
            else None,
            payload=payload.analyse(get("hpl_paper"), get("hpl_payload")),
            cost=cost.analyse(simulated),
            switch=_of(
                switch, get("tcp_mtu"), get("tcp_cost"), get("frame_limits"), get("packet_sizes"), now("tcp_mtu")
            ),
            long_path=_of(long_path, get("long_path"), get("long_repeats"), now("long_path")),
            fan_out=_of(fan_out, get("fan_out"), now("fan_out")),
            token_exchange=_of(token_exchange, get("token_exchange"), now("token_exchange")),
            link_bonding=_of(
                link_bonding, get("link_hpl"), get("link_micro"), now("link_hpl"), now("link_micro")
            ),
            prediction=prediction.analyse(
                datasets["token_nodes"],
                datasets["hpl_scaling"],
                get("hpl_surface"),
                get("hpl_beyond"),
                get("hpl_sensitivity"),
            )
            if {"token_nodes", "hpl_scaling"} <= set(datasets)
            else None,
            payoff=_of(payoff, get("hpl_paper"), get("hpl_sensitivity"), get("hpl_beyond")),
            topology=_of(topology, get("topology"), get("hpl_topology")),
            top500=_of(top500, lists),
            today=today,
        )
    )


def _of(study, dataset: xr.Dataset | None, *further: xr.Dataset | None):
    """A study of a dataset that may be missing."""
    return None if dataset is None else study.analyse(dataset, *further)


def corrected(studies: Studies) -> Studies:
    """The same studies with Holm's correction over all of their verdicts."""
    verdicts = iter(holm(studies.verdicts))
    judged, levels, blas_study, links = studies.scaling, studies.noise, studies.blas, studies.link_bonding
    if judged:
        contrasts = tuple(replace(contrast, verdict=next(verdicts)) for contrast in judged.contrasts)
        judged = replace(judged, contrasts=contrasts)
    if levels:
        levels = replace(levels, levels=tuple(replace(it, growth=next(verdicts)) for it in levels.levels))
    if blas_study:
        blas_study = replace(blas_study, claim=next(verdicts))
    if links:
        ways = tuple(replace(way, growth=next(verdicts)) if way.growth else way for way in links.hpl.ways)
        links = replace(links, hpl=replace(links.hpl, ways=ways))
    return replace(studies, scaling=judged, noise=levels, blas=blas_study, link_bonding=links)
