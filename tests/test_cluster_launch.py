"""The command lines of a trial on a cluster: whose mpirun, which transport, how many threads."""

from dataclasses import replace

import pytest

from runners.record import Command
from runners.testbeds import cluster_launch, remote

XHPL = Command(("xhpl",), ranks=4, ranks_per_node=2)
DESCRIPTION = {"ranks_per_node": 2, "threads": 8, "binding": ["--bind-to", "numa"]}
GIGE = {"subnet": "10.1.0.0/24"}


def site(launcher="ssh", modules=(), network=GIGE, **description):
    """Three hosts of a cluster, on which programs are in /opt."""
    hosts = ("n1", "n2", "n3")
    return cluster_launch.Site(
        cluster=remote.Cluster(launcher, hosts, modules=modules),
        names=hosts,
        addresses=("10.1.0.1", "10.1.0.2", "10.1.0.3"),
        folder="/tmp/folder",
        description={**DESCRIPTION, **description},
        network=network,
        mpirun="/opt/mpirun",
        words=lambda tool: [f"/opt/{tool}"],
    )


def after(option, words):
    """The words that follow each occurrence of an option."""
    return [word for previous, word in zip(words, words[1:]) if previous == option]


def parameters(words):
    """Open MPI's parameters in a command line."""
    return {
        name: words[at + 2]
        for at, (option, name) in enumerate(zip(words, words[1:]))
        if option == "--mca"
    }


def test_mpirun_is_started_here_over_the_hosts():
    """Under a guard, by its path, with so many slots on the first hosts as there are processes on each."""
    words = cluster_launch.argv(XHPL, site())
    assert words[1] == str(cluster_launch.GUARD) and "/opt/mpirun" in words
    assert after("--host", words) == ["n1:2,n2:2"] and after("-np", words) == ["4"]
    assert after("--wdir", words) == ["/tmp/folder"] and words[-1] == "/opt/xhpl"
    assert after("--bind-to", words) == ["numa"] and "--report-bindings" in words
    assert parameters(words)["oob_tcp_keepalive_time"] == "30"  # a lost host is noticed
    assert parameters(words)["plm_rsh_agent"] == " ".join(remote.ssh(remote.Cluster("ssh", ())))
    assert parameters(words)["plm_rsh_no_tree_spawn"] == "1"
    in_job = parameters(cluster_launch.argv(XHPL, site("slurm")))
    assert not [name for name in in_job if name.startswith("plm")]  # mpirun asks Slurm by itself
    binding = ["--map-by", "ppr:1:numa", "--bind-to", "numa"]  # mpirun takes one policy
    assert after("--map-by", cluster_launch.argv(XHPL, site(binding=binding))) == ["ppr:1:numa"]


def test_the_transport_is_pinned():
    """TCP on the network that was asked for, or the network's own words."""
    pinned = parameters(cluster_launch.argv(XHPL, site()))
    assert (
        pinned["pml"] == "ob1"
        and "tcp" in pinned["btl"]
        and pinned["btl_tcp_if_include"] == "10.1.0.0/24"
    )
    own = {**GIGE, "mpi": ["--mca", "pml", "ucx"], "environment": {"UCX_TLS": "rc"}}
    words = cluster_launch.argv(XHPL, site(network=own))
    assert parameters(words)["pml"] == "ucx" and "btl" not in parameters(words)
    assert "UCX_TLS=rc" in after("-x", words)


@pytest.mark.parametrize(("each", "threads"), [(1, 16), (2, 8), (4, 4), (32, 1)])
def test_all_programs_use_the_same_cores(each, threads):
    """DGEMM with one process a node has as many cores as HPL with several, and is not bound to a part of them."""
    words = cluster_launch.argv(replace(XHPL, ranks=each, ranks_per_node=each), site())
    assert {f"OMP_NUM_THREADS={threads}", f"OPENBLAS_NUM_THREADS={threads}"} <= set(
        after("-x", words)
    )
    assert after("--bind-to", words) == (["numa"] if each == 2 else ["none"])


def test_modules_are_there_for_all_ranks():
    """What they set is handed on to the other hosts."""
    words = cluster_launch.argv(XHPL, site(modules=("openmpi/4",)))
    assert words[words.index("1") :][:3] == ["1", "openmpi/4", "/opt/mpirun"]
    assert {"PATH", "LD_LIBRARY_PATH"} <= set(after("-x", words))


def test_other_programs_run_on_their_host_under_a_guard():
    """With the addresses of nodes on the network that was asked for, and the port that is waited for."""
    server = Command(
        ("iperf3", "--server", "--bind", "{node2}"), node=2, background=True, listens=5201
    )
    words = cluster_launch.argv(server, site("slurm"))
    assert "--nodelist=n2" in words
    guarded = ["python3", "/tmp/folder/guard.py", "60", "/tmp/folder", "5201"]
    assert words[words.index("--") + 1 :] == [
        *guarded,
        "/opt/iperf3",
        "--server",
        "--bind",
        "10.1.0.2",
    ]
