"""A campaign of HPL as a cluster of several networks leaves it: the real plan of the example
testbed with more hosts, real outputs with planted rates.
"""

import numpy as np
from foreign_hpl import output

from analysis.descriptions import campaigns, networks, testbeds
from analysis.descriptions.adaptation import for_testbed
from analysis.descriptions.campaigns import for_preset
from analysis.descriptions.resolution import resolve
from runners.records import manifest
from runners.records.journal import Folder
from runners.records.record import Execution, Transcript

NODE_RATE = 480.0  # Gflop/s
LAWS = {"gige": lambda n: 1 / (1 + 0.02 * (n - 1)), "10gige": lambda n: 1 / (1 + 0.0015 * (n - 1))}
NODE = {
    "cpu_model": "Intel(R) Xeon(R) CPU E5-2660 v3 @ 2.60GHz",
    "processors": 20,
    "memory_bytes": 64 * 2**30,
    "system": "Rocky Linux 9.4",
    "kernel": "5.14.0-427.el9.x86_64",
    "networks": {
        "gige": {"interface": "eno1", "address": "10.1.0.1"},
        "10gige": {"interface": "ens2f0", "address": "10.2.0.1"},
    },
}


def plan(hosts: int = 16, blocks: int = 4):
    """hpl_scaling on so many nodes with Gigabit and 10 Gigabit Ethernet, without surveys."""
    names = [f"node{n:02d}" for n in range(1, hosts + 1)]
    machine = testbeds.read("example_ssh").changed(hosts=names, nodes=hosts)
    campaign = for_preset(campaigns.read("hpl_scaling"), "full").changed(survey=[], warm_up=[])
    fitted = for_testbed(campaign, machine)
    fitted = fitted.changed(stopping=fitted.stopping.of_blocks(blocks))
    return resolve(fitted, machine, networks.between(machine.networks))


def write(out, hosts: int = 16, seed: int = 1, laws=LAWS, scatter: float = 0.005):
    """Write the campaign's folder below `out`; returns it."""
    made, rng = plan(hosts), np.random.default_rng(seed)
    folder = Folder(out / f"{made.name}-{made.testbed['name']}-{made.digest[:8]}")
    folder.create_or_check(made)
    states = {host: {"node": n, **NODE} for n, host in enumerate(made.testbed["hosts"], 1)}
    mpirun = {"path": "/opt/openmpi/bin/mpirun", "version": "mpirun (Open MPI) 4.1.6"}
    where = {"launcher": "ssh", "mpirun": mpirun, "environment": {}, "lost": {}, "nodes": states}
    folder.write_provenance({"host": {}, "testbed": where})
    folder.note("session", digest=made.digest, testbed=made.testbed["name"])
    for at, trial in enumerate(trial for block in made.blocks for trial in block):
        point = trial.point
        n, share = point["nodes"], laws[point["interconnect"]](point["nodes"])
        rate = NODE_RATE * n * share * np.exp(rng.normal(0, scatter))
        told = output(rate, N=point["N"], NB=point["NB"], P=point["P"], Q=point["Q"])
        execution = Execution("xhpl", ("mpirun", "xhpl"), told, "", 0, 1.7e9 + 600 * at, 500.0)
        sent = [1e12 if node < n and n > 1 else 0.0 for node in range(hosts)]
        folder.save(
            Transcript(
                trial, made.testbed["name"], "measured", (execution,), {}, {}, {"bytes_sent": sent}
            )
        )
    folder.note("ended", by="blocks")
    manifest.write(folder.path)
    return folder.path
