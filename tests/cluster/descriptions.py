"""The shipped examples of clusters, edited line by line as a reader would, until they describe the emulated nodes."""

from collections.abc import Mapping
from pathlib import Path

from nodes import ROOT

_EXAMPLES = ROOT / "data/testbeds"

# What the example says, and what holds here. The first network is GigE, the second 10GE.
_SSH = {
    'hosts = ["node01", "node02", "node03", "node04"]': 'hosts = ["n1", "n2", "n3", "n4"]',
    "threads = 20": "threads = 1",
    "memory_bytes = 64e9": "memory_bytes = 2e7",  # HPL then takes a second or two
    'subnet = "10.1.0.0/24"': 'subnet = "10.81.0.0/24"',
    'subnet = "10.2.0.0/24"\n': 'subnet = "10.81.1.0/24"\n',
    "timeout_s = 3600": "timeout_s = 20",
}
_SLURM = {
    "nodes = 8": "nodes = 4",
    'modules = ["openmpi/4.1.6"]': "modules = []",
    "ranks_per_node = 2": "ranks_per_node = 1",
    "threads = 16": "threads = 1",
    'binding = ["--map-by", "ppr:1:numa:PE=16", "--bind-to", "core"]': 'binding = ["--bind-to", "none"]',
    "memory_bytes = 256e9": "memory_bytes = 2e7",
    'partition = "compute"': 'partition = "all"',
    "[networks.10gige]": "[networks.gige]",
    "rate_bit_s = 10e9": "rate_bit_s = 1e9",
    "[networks.100gige]": "[networks.10gige]",
    'subnet = "10.20.0.0/16"': 'subnet = "10.81.1.0/24"',
    "rate_bit_s = 100e9": "rate_bit_s = 10e9",
    "mtu = 9000": "mtu = 1500",
    'rdma = "mlx5_0:1"': "",
    'mpi = ["--mca", "pml", "ucx"]': "",
    'environment = { UCX_TLS = "rc,self,sm", UCX_NET_DEVICES = "mlx5_0:1" }': "",
    "timeout_s = 3600": "timeout_s = 20",
}


def ssh(name: str, config: Path, edits: Mapping[str, str] = {}) -> str:
    """The nodes as a testbed of that name without a scheduler; `edits` come on top."""
    own = {
        'name = "example_ssh"': f'name = "{name}"',
        '# [ssh]\n# config = "~/.ssh/config"': f'[ssh]\nconfig = "{config}"',
    }
    return _edited("example_ssh", {**_SSH, **own, **edits})


def slurm(name: str, time_limit_s: int) -> str:
    """The nodes as a testbed of that name with Slurm."""
    own = {
        'name = "example_slurm"': f'name = "{name}"',
        "time_limit_s = 14400": f"time_limit_s = {time_limit_s}",
    }
    return _edited("example_slurm", {**_SLURM, **own})


def _edited(example: str, edits: Mapping[str, str]) -> str:
    text = (_EXAMPLES / f"{example}.toml").read_text()
    for old, new in edits.items():
        assert text.count(old) == 1, f"{example}.toml has {old!r} {text.count(old)} times"
        text = text.replace(old, new)
    return text
