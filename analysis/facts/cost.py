"""What prose may quote of what simulations took: times in s, memory in B, errors as fractions."""

from dataclasses import asdict

import pandas as pd

from analysis.facts.plain import known
from analysis.studies.cost import SHORTEST, Cost


def collect(study: Cost) -> dict:
    """All facts of the simulations' own cost; what is not known is None."""
    trials = study.trials
    counted = study.fitted.dropna(subset="messages")
    largest = trials.sort_values(["nodes", "N", "simulator_cpu_time"]).iloc[-1]
    return {
        "trials": len(trials),
        "fitted": len(study.fitted),
        "shortest": SHORTEST,
        "least_cpu_time": float(trials.simulator_cpu_time.min()),
        "law": asdict(study.law),
        "memory": None if study.memory is None else asdict(study.memory),
        "messages_per_second": known(counted.messages.sum() / counted.simulator_cpu_time.sum())
        if len(counted)
        else None,
        "largest": _trial(largest),
        "longest": _trial(trials.loc[trials.simulator_cpu_time.idxmax()]),
        "campaigns": [
            {
                "campaign": name,
                "trials": len(of_one),
                "cpu_time": float(of_one.simulator_cpu_time.sum()),
                "most_nodes": int(of_one.nodes.max()),
                "most_memory": known(of_one.simulator_memory.max()),
            }
            for name, of_one in trials.groupby("campaign", sort=False)
        ],
    }


def _trial(trial: pd.Series) -> dict:
    return {
        **{name: int(trial[name]) for name in ("nodes", "N", "P", "Q")},
        "cpu_time": float(trial.simulator_cpu_time),
        "memory": known(trial.simulator_memory),
        "messages": known(trial.messages),
    }
