"""Outputs of HPL as somebody else's cluster may have left them: a real one with other numbers in
its row.
"""

import recorded

from runners.tools.hpl import operations

REAL = recorded.text("hpl/2.0-one-row")
_RULE = "=" * 80 + "\n"
*_HEAD, _TABLE, _TAIL, _END = REAL.split(_RULE)
_ROW = next(line for line in _TABLE.splitlines() if line.startswith("WR11C2C4"))


def output(rate: float, **sizes: int) -> str:
    """A whole output of one test at this rate [Gflop/s], consistent to the digits that HPL
    prints.
    """
    return sweep({"WR11C2C4": rate}, **sizes)


def sweep(rates: dict[str, float], N: int = 40000, NB: int = 128, P: int = 1, Q: int = 2) -> str:
    """A whole output of one run that tests variants, at these rates [Gflop/s]."""
    tables = []
    for variant, rate in rates.items():
        time = round(operations(N) / 1e9 / rate, 2)
        row = f"{variant}{N:12d}{NB:6d}{P:6d}{Q:6d}{time:19.2f}{operations(N) / 1e9 / time:23.3e}"
        tables.append(_TABLE.replace(_ROW, row))
    tail = _TAIL.replace("      1 tests", f"{len(tables):7d} tests")
    return _RULE.join([*_HEAD, *tables, tail, _END])


def folder_of_runs(folder, shares: dict, rpeak: float, repeats: int = 3) -> None:
    """Files network/nodes-run.out of nodes with 4 processes each, at a share of rpeak [flop/s] of a
    node.

    `shares` is by network and number of nodes; the runs of a point differ by half a percent.
    """
    for network, by_nodes in shares.items():
        (folder / network).mkdir(parents=True)
        for nodes, share in by_nodes.items():
            for run in range(repeats):
                rate = share * nodes * rpeak / 1e9 * (1 + 0.005 * (run - 1))
                file = folder / network / f"{nodes}-{run}.out"
                file.write_text(output(rate, P=2, Q=2 * nodes))
