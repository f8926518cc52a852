"""Emulated nodes with real daemons on them, for the tests of this folder; skipped where they cannot be had."""

import os
import shutil

import daemons
import nodes
import pytest

from runners.testbeds import emulated

_DAEMONS = {
    "/usr/sbin/sshd": "openssh-server",
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "munged": "munge",
}


def _lacking() -> list[str]:
    packages = sorted({package for daemon, package in _DAEMONS.items() if not shutil.which(daemon)})
    missing = [f"daemons are missing: apt-get install {' '.join(packages)}"] if packages else []
    return (
        emulated.unavailable(nodes.EMULATED)
        + ([] if os.geteuid() == 0 else ["they need root"])
        + missing
    )


@pytest.fixture(scope="session", autouse=True)
def needs():
    """Every test here needs root, namespaces and the daemons."""
    lacking = _lacking()
    if lacking:
        pytest.skip("; ".join(lacking))


@pytest.fixture(scope="module")
def cluster(needs):
    """Four compute nodes and a head, up as long as a file of tests runs."""
    with nodes.up(4) as up:
        yield up


@pytest.fixture(scope="module")
def ssh_config(cluster):
    """Every node serves ssh; the configuration for `ssh -F` on any of them."""
    return daemons.ssh(cluster)


@pytest.fixture(scope="module")
def real_slurm(cluster):
    """Slurm over the four compute nodes, its controller on the head."""
    return daemons.slurm(cluster)
