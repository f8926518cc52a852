"""The mpirun command line for nodes that share a kernel but have no sshd."""

from typing import Any, List, Mapping, Sequence

_PARAMETERS = {
    # TCP between nodes, whatever faster transport Open MPI would find on the one machine below.
    "pml": "ob1",
    "btl": "tcp,self",
    "plm": "rsh",
    "plm_rsh_no_tree_spawn": "1",
    # Ranks that wait must not take the processor that other nodes share with them.
    "mpi_yield_when_idle": "1",
}


def mpirun(
    ranks: int,
    addresses: Sequence[str],
    networks: Sequence[str],
    agent: str,
    program: Sequence[str],
    each: int = 1,
    further: Mapping[str, Any] = {},
) -> List[str]:
    """mpirun for `ranks` ranks, `each` on an address in turn.

    Messages use all `networks`, which are subnets, and mpirun's own talk the first. `further` are parameters of Open
    MPI by their names, which replace those here.

    Nodes are listed by address, so that no resolver is asked for their names. The tool's own name is
    bare: called by a path, mpirun sends a shell script to the agent instead of plain words.
    """
    parameters = {
        **_PARAMETERS,
        "plm_rsh_agent": agent,
        "btl_tcp_if_include": ",".join(networks),
        "oob_tcp_if_include": networks[0],
    }
    hosts = addresses[:ranks]
    if each > 1:
        parameters["btl"] += ",vader"  # shared memory between the ranks of a node
        hosts = [f"{address}:{each}" for address in addresses[: -(-ranks // each)]]
    parameters.update({name: _word(value) for name, value in further.items()})
    return [
        "mpirun",
        "--allow-run-as-root",
        "--noprefix",
        *("--bind-to", "none", "--map-by", "node" if each == 1 else "slot"),
        *(word for name, value in parameters.items() for word in ("--mca", name, value)),
        *("--host", ",".join(hosts), "-np", str(ranks)),
        *program,
    ]


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
