"""What the section of any HPL campaign has to say of it before its results."""

import json

import numpy as np
import xarray as xr

from analysis.facts.conduct import campaign, faults
from analysis.studies.scaling import short_names


def common(dataset: xr.Dataset, points: xr.Dataset) -> dict:
    """How the campaign was designed and conducted, and what failed; `points` is from `derive.points`."""
    drift = np.abs(points.drift.values[np.isfinite(points.drift.values)])
    return {
        "campaign": campaign(dataset),
        "design": json.loads(dataset.attrs["design"]),
        "names": short_names(dataset),
        "evidence": points.evidence.item(),
        "caveat": dataset.attrs.get("caveat", ""),
        "blocks": {
            "run": points.sizes["block"],
            "valid": int(points.block_valid.sum()),
            "largest_drift": float(drift.max()) if drift.size else None,
        },
        "settings": json.loads(dataset.attrs["settings"]),
        "testbed": json.loads(dataset.attrs["testbed_settings"]),
        "faults": faults(dataset, points),
    }
