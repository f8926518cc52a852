"""What prose may quote of the procedure's error rates in synthetic campaigns, which are stored."""

import pandas as pd

from analysis.statistics.calibration import AT_MOST, FOLDER, load, results, summary


def collect() -> dict:
    """All facts of the stored tables: `rows` by procedure and scatter, the worst of all truths, and what a quick run
    says of a reference."""
    settings, rates = load(), results()
    again = pd.read_csv(FOLDER / "reproduction.csv")
    same, other = (again[again.difference == name] for name in ("none", "margin"))
    return {
        "campaigns": settings["campaigns"],
        "truths": len(rates),
        "margin": settings["margin"],
        "large_fall": settings["large_fall"],
        "goal": AT_MOST,
        "looks": {name: list(design.looks) for name, design in settings["procedures"].items()},
        "levels": {name: design.one_sided for name, design in settings["procedures"].items()},
        "rows": summary(rates, settings).to_dict("records"),
        "wrong_falls_off": float(rates.wrong_falls_off.max()),
        "wrong_flat": float(rates.wrong_flat.max()),
        "coverage": float(rates.coverage.min()),
        "reproduction": {
            **settings["reproduction"],
            "wrongly_reproduced": float(other.reproduced.max()),
            "wrongly_not": float(same.not_reproduced.max()),
        },
    }
