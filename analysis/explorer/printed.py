"""What the sources printed of a quantity, to stand beside its trials; nothing is computed from it."""

from collections.abc import Callable

import pandas as pd

from analysis import published
from analysis.explorer.trials import SHOWN, Trials
from analysis.explorer.view import View
from analysis.studies.mtu import published_points

NOTHING = pd.DataFrame({"value": [], "text": []})


def offered(trials: Trials) -> bool:
    """Whether a source printed anything of what this campaign runs, at levels that it has."""
    return any(not _at_levels(name, trials).empty for name in trials.quantities)


def printed(view: View, trials: Trials) -> pd.DataFrame:
    """A row for each printed number that belongs into a view, none where the view leaves them out.

    Columns: the levels of the abscissa and the series, `value` in the quantity's unit, `text`: where it is printed.
    """
    rows = _at_levels(view.ordinate, trials)
    if not view.printed or not {view.abscissa, view.series} <= set(rows):
        return NOTHING
    for name, level in view.fixed:
        rows = rows[rows[name] == level] if name in rows else rows
    return rows[rows[view.series].isin(view.shown)].reset_index(drop=True)


def _at_levels(ordinate: str, trials: Trials) -> pd.DataFrame:
    """All that is printed of a quantity, but for levels by name that the campaign does not have."""
    table = _TABLES.get((trials.dataset.attrs["campaign"], ordinate))
    if table is None or ordinate not in trials.quantities:
        return NOTHING
    rows = table(trials)
    for name in set(rows) & set(trials.factors):
        if rows[name].dtype.kind not in "iuf":
            rows = rows[rows[name].isin(trials.factors[name])]
    scale = dict(SHOWN.values()).get(trials.quantities[ordinate].unit, 1.0)
    return rows.assign(value=scale * rows.value)


def _tcp_mtu(trials: Trials) -> pd.DataFrame:
    found = published_points(trials.design.get("published", {})).query("direction != 'both'")
    source, names = published.nemo()["source"]["short"], published.nemo()["device"]
    told = [f"{names[device]}, MTU {mtu}, {source}" for device, mtu in zip(found.device, found.mtu)]
    return found[["path", "mtu", "direction"]].assign(value=found.total, text=told)


def _frame_limits(trials: Trials) -> pd.DataFrame:
    source = published.nemo()
    frame = source["frame_limit"]["smc_8505t"]["frame"]
    told = f"{source['source']['short']}, {frame['where']}"
    return _row(path="switch_8996", load=0, value=frame["value"], text=told)


def _hpl_paper(trials: Trials) -> pd.DataFrame:
    """The paper's line, which it says holds for all of its cases."""
    source = published.smith()
    line = source["efficiency"]["line"]
    told = f"{source['source']['short']}, {line['where']}"
    nodes = published.smith_table1().nodes
    return pd.DataFrame({"interconnect": "10gige", "nodes": nodes, "value": line["value"], "text": told})


def _token_exchange(trials: Trials) -> pd.DataFrame:
    source = published.beowulf()
    found, exchange = source["throughput"]["local_wire"], source["exchange"]
    levels = {"pairs": exchange["most_pairs"]["value"], "token_bytes": exchange["largest_token"]["value"]}
    told = f"{source['source']['short']}, {found['where']}"
    return _row(path="local_wire_10m", **levels, value=found["value"], text=told)


def _fan_out(trials: Trials) -> pd.DataFrame:
    source = published.grid5000()
    bridge = source["bridge"]
    levels = {"path": "fanout_3g", "receivers": bridge["targets"]["value"], "direction": "forward"}
    told = f"{source['source']['short']}, {bridge['saturation']['where']}"
    return _row(**levels, value=bridge["saturation"]["value"], text=told)


def _row(**columns) -> pd.DataFrame:
    return pd.DataFrame([columns])


# By campaign and quantity; values in the unit of the campaign's readings. Of other campaigns the sources print
# nothing, or of machines so different that only ratios can be compared, which the report does.
_TABLES: dict[tuple[str, str], Callable[[Trials], pd.DataFrame]] = {
    ("tcp_mtu", "goodput"): _tcp_mtu,
    ("frame_limits", "frame_bytes_largest"): _frame_limits,
    ("hpl_paper", "efficiency"): _hpl_paper,
    ("token_exchange", "token_throughput"): _token_exchange,
    ("fan_out", "aggregate_goodput"): _fan_out,
}
