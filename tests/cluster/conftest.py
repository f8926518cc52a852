"""Emulated nodes with real daemons on them, for the tests of this folder; skipped where they cannot
be had.
"""

import daemons
import nodes
import pytest


@pytest.fixture(scope="session", autouse=True)
def needs():
    """Every test here needs root, namespaces and the daemons."""
    if lacking := daemons.lacking():
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
