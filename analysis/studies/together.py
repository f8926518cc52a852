"""All experiments of one report: their studies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import xarray as xr

from analysis.experiments import hpl_agreement as agreement
from analysis.experiments import hpl_invariance as invariance
from analysis.experiments import hpl_noise as noise
from analysis.experiments import hpl_table1 as table1
from analysis.experiments import scale_model
from analysis.experiments.hpl_agreement import Agreement
from analysis.experiments.hpl_invariance import Invariance
from analysis.experiments.hpl_noise import Noise
from analysis.experiments.hpl_table1 import Table1
from analysis.experiments.scale_model import ScaleModel
from analysis.studies import (
    beyond,
    blas,
    cost,
    fan_out,
    link_bonding,
    long_path,
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
from analysis.studies.beyond import Beyond
from analysis.studies.blas import Blas
from analysis.studies.cost import Cost
from analysis.studies.fan_out import FanOut
from analysis.studies.link_bonding import LinkBonding
from analysis.studies.long_path import LongPath
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
    "hpl_scaling": ("hpl_scaling", "scale_model"),
    "hpl_size": ("hpl_size", "scale_model"),
    "hpl_noise": ("hpl_noise", "scale_model"),
    "hpl_blas": ("hpl_blas", "emulated"),
    "hpl_payload": ("hpl_payload", "scale_model"),
    "hpl_paper": ("hpl_paper", "smith"),
    "hpl_sensitivity": ("hpl_sensitivity", "smith"),
    "hpl_contention": ("hpl_contention", "smith"),
    "hpl_beyond": ("hpl_beyond", "smith"),
    "hpl_agreement": ("hpl_agreement", "scale_model_simulated"),
    "hpl_invariance": ("hpl_invariance", "scale_model"),
    "hpl_table1": ("hpl_table1", "scale_model"),
    "tcp_mtu": ("tcp_mtu", "paths"),
    "tcp_cost": ("tcp_cost", "paths"),
    "frame_limits": ("frame_limits", "paths"),
    "packet_sizes": ("packet_sizes", "paths"),
    "long_path": ("long_path", "paths"),
    "long_repeats": ("long_repeats", "paths"),
    "fan_out": ("fan_out", "paths"),
    "token_exchange": ("token_exchange", "beowulf"),
    "link_hpl": ("link_hpl", "two_links"),
    "link_micro": ("link_micro", "rails"),
    "topology": ("topology", "nemo"),
    "hpl_topology": ("hpl_topology", "nemo"),
    "token_nodes": ("token_nodes", "scale_model"),
    "hpl_surface": ("hpl_surface", "scale_model_simulated"),
}

# What is shown only beside another of them.
BESIDE = {
    "hpl_sensitivity": "hpl_paper",
    "hpl_contention": "hpl_paper",
    "hpl_beyond": "hpl_paper",
    "hpl_agreement": "hpl_scaling",
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
    """The study of each experiment that there are data for.

    `datasets` are what they are studies of, but for `top500`, which is of published lists, and `scale_model`, which is of
    the testbed's description; `today` the shorter runs beside them.
    """

    datasets: Mapping[str, xr.Dataset]
    scaling: Scaling | None = None
    size: Size | None = None
    noise: Noise | None = None
    blas: Blas | None = None
    paper: Paper | None = None
    beyond: Beyond | None = None
    agreement: Agreement | None = None
    invariance: Invariance | None = None
    table1: Table1 | None = None
    scale_model: ScaleModel | None = None
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


def analyse(
    datasets: Mapping[str, xr.Dataset],
    today: Mapping[str, xr.Dataset] = MappingProxyType({}),
    lists: xr.Dataset | None = None,
) -> Studies:
    """Analyse the datasets, by the names of `DATASETS`, each by itself.

    `today` holds shorter runs of some of them, to be compared with them.
    `lists` are TOP500's, as `top500.lists.read_folder` gives them, be it without a system.
    Raises FalloffError when a dataset holds no trial of its campaign's tool.
    """
    get, now = datasets.get, today.get
    of_scaling = _of(scaling, get("hpl_scaling"), now("hpl_scaling"))
    of_size = _of(size, get("hpl_size"))
    simulated = [data for data in (get("hpl_paper"), get("hpl_beyond")) if data is not None]
    return Studies(
        datasets=datasets,
        scaling=of_scaling,
        size=of_size,
        noise=_of(noise, get("hpl_noise")),
        blas=_of(blas, get("hpl_blas")),
        paper=_of(paper, get("hpl_paper"), get("hpl_sensitivity"), get("hpl_contention"), now("hpl_paper")),
        beyond=_of(beyond, get("hpl_beyond"), get("hpl_paper")),
        agreement=agreement.analyse(datasets["hpl_scaling"], datasets["hpl_agreement"], get("token_nodes"))
        if {"hpl_scaling", "hpl_agreement"} <= set(datasets)
        else None,
        invariance=_of(invariance, get("hpl_invariance")),
        table1=_of(table1, get("hpl_table1"), get("hpl_paper")),
        scale_model=scale_model.analyse() if _on_scale_model(datasets) else None,
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


def _on_scale_model(datasets: Mapping[str, xr.Dataset]) -> bool:
    """Whether any of them ran there."""
    return any((dataset.testbed == scale_model.MODEL).any() for dataset in datasets.values() if "testbed" in dataset.coords)


def _of(study, dataset: xr.Dataset | None, *further: xr.Dataset | None):
    """A study of a dataset that may be missing."""
    return None if dataset is None else study.analyse(dataset, *further)
