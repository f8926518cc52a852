"""How a campaign was conducted: what ran, where, when, and what went wrong."""

import json
from collections.abc import Iterable

import pandas as pd
import xarray as xr


def campaign(dataset: xr.Dataset) -> dict:
    """Name, hash, dates and size of a campaign, and the commit of the code that ran it (None: not known)."""
    keys = ("campaign", "title", "campaign_hash", "started", "ended", "stopped_by")
    machine = host(dataset)
    return {
        **{key: dataset.attrs[key] for key in keys},
        "commit": machine.get("git_commit"),
        "dirty": machine.get("git_dirty"),
        "extensions": int(dataset.attrs["extensions"]),
        "warm_ups": int((dataset.role == "warm_up").sum()),
        "trials": dataset.sizes["trial"],
        "testbed": dataset.testbed.values[0].item() if dataset.sizes["trial"] else "",
        "evidence": dataset.evidence.values[0].item() if dataset.sizes["trial"] else "",
        "failed": _failed(dataset).to_dict("records"),
    }


def host(dataset: xr.Dataset) -> dict:
    """The machine of the campaign's last session; empty when it is not recorded."""
    sessions = json.loads(dataset.attrs["provenance"]).get("sessions", [])
    return sessions[-1]["host"] if sessions else {}


def settings(datasets: Iterable[xr.Dataset]) -> dict:
    """What was set: `campaigns` each with their own, `testbeds` and `machines` once each. The code's commit is no part of
    a machine.
    """
    campaigns, testbeds, machines = [], {}, {}
    for dataset in datasets:
        about = campaign(dataset)
        own = {"campaign": about["campaign"], "testbed": about["testbed"]}
        campaigns.append({**own, "given": json.loads(dataset.attrs["settings"])})
        testbed = dataset.attrs["testbed_settings"]
        kind = {"testbed": own["testbed"], "evidence": about["evidence"]}
        testbeds.setdefault(testbed, {**kind, "given": json.loads(testbed)})
        machine = {key: value for key, value in host(dataset).items() if not key.startswith("git")}
        same = machines.setdefault(json.dumps(machine), {"campaigns": [], "given": machine})
        same["campaigns"] += [] if about["campaign"] in same["campaigns"] else [about["campaign"]]
    return {
        "campaigns": campaigns,
        "testbeds": list(testbeds.values()),
        "machines": [it for it in machines.values() if it["given"]],
    }


def faults(dataset: xr.Dataset, points: xr.Dataset) -> dict:
    """Every trial without a valid reading, and every point that the analysis left out; and why."""
    trials = _failed(dataset)
    kept = points.reason.to_series().rename("reason")
    return {
        "trials": trials.to_dict("records"),
        "points": kept[~kept.isin(["", *trials.reason])].reset_index().to_dict("records"),
    }


def _failed(dataset: xr.Dataset) -> pd.DataFrame:
    columns = ["trial_id", "runner", "interconnect", "path", "status", "reason"]
    return pd.DataFrame({name: dataset[name].values for name in columns}).query("status != 'ok'")
