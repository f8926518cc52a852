"""What prose may quote of the switch tests: goodputs in bit/s, costs in s/B, sizes in B, shares are fractions."""

import json
from dataclasses import asdict

import numpy as np
import xarray as xr

from analysis import cpu_account, published, wire
from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair
from analysis.inference.averages import mean_over
from analysis.inference.over_blocks import rates, summary
from analysis.studies.frame_limits import FrameLimits
from analysis.studies.mtu import Mtu
from analysis.studies.packet_sizes import PacketSizes
from analysis.studies.scaling import short_names
from analysis.studies.switch import Switch
from analysis.studies.tcp_cost import COST, End, TcpCost
from analysis.tcp import EXCESS, FULL, STAMPS

# A share of the wire limit is a rate in another unit.
AVERAGES = {"total": rates, "share": rates, "cost_local": summary, "cost_remote": summary}


def collect(study: Switch) -> dict:
    """All facts of the switch tests; what is not known, and a campaign without data, is None."""
    source = published.nemo()
    parts = {"cost": _cost, "limits": _limits, "sizes": _sizes}
    return {
        **_mtu(study.mtu),
        **{name: facts(data) if (data := getattr(study, name)) else None for name, facts in parts.items()},
        "today": _today(study.mtu, study.today) if study.today else None,
        "source": source["source"],
        "statement": source["statement"][0]["quote"],
        "lost": source["lost"],
        "published_limit": source["frame_limit"]["smc_8505t"]["frame"]["value"],
    }


def _mtu(study: Mtu) -> dict:
    found, names = study.points, short_names(study.dataset)
    averaged = {name: average(found[name]) for name, average in AVERAGES.items()}
    measured = xr.concat(averaged.values(), xr.DataArray([*averaged], dims="quantity", name="quantity"))
    rows = [
        _point(measured.sel(path=path, mtu=mtu), study, names[path], path, mtu)
        for path in found.path.values
        for mtu in found.mtu.values
    ]
    cells = [cell for row in rows for cell in row["directions"]]
    stamped = {kind: [cell for cell in cells if cell["stamp"] == kind] for kind in STAMPS}
    return {
        **_about(study.dataset),
        "names": names,
        "devices": published.nemo()["device"],
        "unshaped": [names[path] for path in found.path.values if found.limit.sel(path=path).isnull().all()],
        "blocks": found.sizes["block"],
        "widest": _widest(averaged["total"]),
        "headers": {"inside": wire.INSIDE_MTU, "outside": wire.OUTSIDE_MTU},
        "full": FULL,
        "excess": EXCESS,
        "most_unattributed": cpu_account.MOST_UNATTRIBUTED,
        "directions": found.direction.values.tolist(),
        "points": rows,
        "count": sum(map(len, stamped.values())),
        "stamped": stamped,
        "trials": int(found.total.notnull().sum()),
        "attributed": int(found.cost_local.notnull().sum()),
        "retransmits": int(found.retransmits.sum()),
        "onlookers": {
            "readings": study.onlookers.readings,
            "largest": known(study.onlookers.largest),
            "flooded": sorted({names[path] for path, _ in study.onlookers.flooded}),
        },
        "beside": _beside(study),
        "published": [
            {**row, "path": names.get(row["path"], row["path"])} for row in study.published.to_dict("records")
        ],
    }


def _today(reference: Mtu, today: Mtu) -> dict:
    """Of the points that both have and a limit can be told of, those that the same thing limits today."""
    then, now = xr.align(reference.stamps, today.stamps)
    told = (then != "") & (now != "")
    return {
        "ended": today.dataset.attrs["ended"],
        "points": int(told.sum()),
        "same": int((told & (then == now)).sum()),
    }


def _beside(study: Mtu) -> dict | None:
    """The source's lowest share one way, and `here` that of the same direction and MTU on the path like it."""
    one_way = study.published.query("direction == 'forward'")
    if one_way.empty:
        return None
    lowest = one_way.loc[one_way.share.idxmin()].to_dict()
    place = {name: lowest[name] for name in ("path", "mtu", "direction")}
    share = mean_over(study.points.share, "block", "rate")
    run = all(value in share[name].values for name, value in place.items())
    return {**lowest, "here": known(share.sel(place)) if run else None}


def _point(at: xr.Dataset, study: Mtu, name: str, path: str, mtu: int) -> dict:
    """A path at an MTU, with what was found in each direction."""
    return {
        "path": name,
        "mtu": int(mtu),
        "directions": [
            {
                "path": name,
                "mtu": int(mtu),
                "direction": direction,
                "stamp": study.stamps.sel(path=path, mtu=mtu, direction=direction).item(),
                **{
                    quantity: _estimate(at.sel(quantity=quantity, direction=direction))
                    for quantity in at.quantity.values
                },
            }
            for direction in at.direction.values
        ],
    }


def _cost(study: TcpCost) -> dict:
    return {
        **_about(study.dataset),
        "path": json.loads(study.dataset.attrs["interconnects"])[study.points.path.item()]["name"],
        "blocks": study.points.sizes["block"],
        "trials": int(study.points.total.notnull().sum()),
        "unattributed": study.unattributed,
        "most_unattributed": cpu_account.MOST_UNATTRIBUTED,
        "left_out": study.left_out,
        "instructions": study.instructions,
        "mtus": [int(mtu) for mtu in study.points.mtu.values],
        "model": {"equation": COST.equation, "source": COST.source},
        "ends": [_end(end) for end in study.ends],
    }


def _end(end: End) -> dict:
    held_out, fitted = end.held_out, end.fitted
    interval = None if held_out is None else pair(*held_out.interval)
    return {
        "name": end.name,
        "points": [{"mtu": int(mtu), **_estimate(end.means.sel(mtu=mtu))} for mtu in end.means.mtu.values],
        "refused": end.refused,
        "blocks": fitted.blocks if fitted else 0,
        "parts": {
            name: {"estimate": fitted.estimates[name], "interval": pair(*fitted.intervals[name])}
            for name in COST.parameters
        }
        if fitted
        else None,
        "error": None if held_out is None else known(held_out.error),
        "error_interval": interval,
        "predicted": None if interval is None else bool(interval[0] <= 0 <= interval[1]),
        "held_out_refused": end.held_out_refused,
    }


def _limits(study: FrameLimits) -> dict:
    names, rows = short_names(study.dataset), study.map.to_dict("records")
    return {
        **_about(study.dataset),
        "hosts": json.loads(study.dataset.attrs["settings"])["mtu"],
        "rows": [
            {**row, "path": names[row["path"]], **{size: known(row[size]) for size in ("payload", "mtu", "frame")}}
            for row in rows
        ],
        "count": len(rows),
        "exact": int(sum(row["alike"] and row["frame"] == row["expected"] for row in rows)),
    }


def _sizes(study: PacketSizes) -> dict:
    names = short_names(study.dataset)
    received, delivered = rates(study.points.received), mean_over(study.points.delivered, "block", "ratio")
    means = {"received": received["mean"], "delivered": delivered, "loss": study.losses.loss}
    return {
        **_about(study.dataset),
        "blocks": study.points.sizes["block"],
        "widest": _widest(received),
        "compared": names[study.compared],
        "reference": names[study.reference],
        "margin": next(iter(study.blocking.values())).margin,
        "rows": [
            {
                "frame": size,
                "judged": asdict(control),
                "limit": known(study.points.limit.sel(path=study.compared, frame_bytes=size)),
                **{
                    f"{quantity}_{role}": known(mean.sel(path=path, frame_bytes=size))
                    for quantity, mean in means.items()
                    for role, path in (("compared", study.compared), ("reference", study.reference))
                },
            }
            for size, control in study.blocking.items()
        ],
    }


def _widest(found: xr.Dataset) -> float | None:
    """By which part an interval reaches beyond its mean at most; None without an interval."""
    return known((np.maximum(found.high, 2 * found["mean"] - found.low) / found["mean"] - 1).max())


def _about(dataset: xr.Dataset) -> dict:
    """The campaign, and the kind of evidence that every statement on it rests on."""
    about = campaign(dataset)
    return {"campaign": about, "evidence": about["evidence"]}


def _estimate(found: xr.Dataset) -> dict:
    mean = known(found["mean"])
    return {
        "estimate": mean,
        "interval": pair(found.low, found.high),
        "blocks": int(np.nan_to_num(found.blocks)),
    }
