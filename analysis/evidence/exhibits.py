"""What each figure of the report rests on: the one place that says so; a test draws them on changed data."""

from dataclasses import dataclass

from runners.record import FalloffError

# Of each section, its figures with the datasets (names of `together.DATASETS`) and files of data/ that they show.
_SECTIONS = {
    "scaling": {
        "rate": ("hpl_scaling",),
        "share": ("hpl_scaling",),
        "efficiency": ("hpl_scaling",),
        "falls": ("hpl_scaling",),
        "links": ("hpl_scaling",),
        "balance": ("hpl_scaling", "published/smith.toml", "published/smith_table1.csv"),
    },
    "size": {"size": ("hpl_size",), "size_ratio": ("hpl_size",)},
    "noise": {"noise": ("hpl_noise",), "amplification": ("hpl_noise",)},
    "blas": {"blas": ("hpl_blas",)},
    "paper": {
        "paper": ("hpl_paper", "hpl_sensitivity", "hpl_scaling", "published/smith.toml"),
        "paper_alone": ("hpl_paper", "hpl_sensitivity", "published/smith.toml"),
        "sensitivity": ("hpl_sensitivity",),
        "contention": ("hpl_contention",),
    },
    "beyond": {"beyond": ("hpl_beyond", "hpl_paper")},
    "agreement": {"agreement": ("hpl_scaling", "hpl_agreement")},
    "invariance": {"invariance": ("hpl_invariance",)},
    "table1": {"table1": ("hpl_table1", "hpl_paper", "published/smith.toml")},
    "payload": {"payload": ("hpl_paper", "hpl_payload")},
    "cost": {"simulator_cost": ("hpl_paper", "hpl_beyond")},
    "switch": {
        **{
            name: ("tcp_mtu", "published/nemo.toml", "published/nemo_netperf.csv")
            for name in ("switch_throughput", "switch_unshaped", "switch_cpu", "switch_cost")
        },
        "tcp_cost": ("tcp_cost",),
        "frame_limits": ("frame_limits", "published/nemo.toml"),
        "packet_sizes": ("packet_sizes",),
    },
    "long_path": {"long_path": ("long_path",), "long_path_repeats": ("long_repeats",)},
    "fan_out": {name: ("fan_out",) for name in ("fan_out", "fan_out_shares", "fan_out_changes")},
    "token_exchange": {
        name: ("token_exchange",) for name in ("token_exchange", "token_pairs", "token_claims", "token_samples")
    },
    "link_bonding": {
        "link_bonding": ("link_hpl", "published/bonding_blog.csv"),
        "link_bonding_micro": ("link_micro",),
    },
    "prediction": {
        "prediction": ("hpl_scaling", "token_nodes", "hpl_surface"),
        "prediction_sensitivity": ("token_nodes", "hpl_surface", "hpl_sensitivity"),
    },
    "payoff": {"payoff": ("hpl_paper", "hpl_sensitivity", "hpl_beyond", "prices.toml")},
    "topology": {
        "topology_growth": ("topology",),
        "topology": ("topology", "hpl_topology", "designs/nemo.toml"),
        "topology_nodes": ("topology", "designs/nemo.toml"),
    },
    "top500": {name: ("published/top500.toml",) for name in ("list_efficiency", "list_share")},
}


# Sections that are modules of analysis/experiments, and the modules' names.
_EXPERIMENTS = {
    "noise": "hpl_noise",
    "agreement": "hpl_agreement",
    "invariance": "hpl_invariance",
    "table1": "hpl_table1",
}


@dataclass(frozen=True)
class Exhibit:
    """A figure by its name in `report.draw`, the section it is in, its datasets and its files of data/."""

    figure: str
    section: str
    datasets: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def drawn_by(self) -> str:
        """The function that draws it."""
        module = f"experiments.{_EXPERIMENTS[self.section]}" if self.section in _EXPERIMENTS else f"figures.{self.section}"
        return f"analysis.{module}.draw"

    @property
    def studied_by(self) -> str:
        """The function that turns the datasets into what is drawn."""
        module = f"experiments.{_EXPERIMENTS[self.section]}" if self.section in _EXPERIMENTS else f"studies.{self.section}"
        return f"analysis.{module}.analyse"


def _is_file(name: str) -> bool:
    """Whether it is a file of data/ and no dataset."""
    return "." in name


EXHIBITS = {
    figure: Exhibit(
        figure,
        section,
        tuple(name for name in rests_on if not _is_file(name)),
        tuple(name for name in rests_on if _is_file(name)),
    )
    for section, figures in _SECTIONS.items()
    for figure, rests_on in figures.items()
}


def find(figure: str) -> Exhibit:
    """A figure's exhibit; raises FalloffError that names all figures when there is none of that name."""
    name = figure.removesuffix(".svg").removeprefix("fig:")
    if name not in EXHIBITS:
        raise FalloffError(f"there is no figure {figure!r}; there are: {', '.join(sorted(EXHIBITS))}")
    return EXHIBITS[name]
