"""Simulated years of a cluster: the blocks of the stored campaign `suspects` night after night,
with scatter between sessions.
"""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from analysis import experiment
from analysis.watch.history_sessions import History, Session, _of_suspects

NIGHTS, BLOCKS = 365, 2
BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
SWITCHES = {f"n{number}": f"s{(number + 3) // 4}" for number in range(1, 17)}


def stored_blocks(*whats):
    """Log speeds (blocks, nodes) of the stored runs, by quantity, and the nodes' names."""
    dataset = experiment.stored("suspects").reset_coords()
    units: dict = {}
    numbers = ["1"] * dataset.sizes["trial"]
    rows = list(_of_suspects(dataset, numbers, units))
    table = pd.DataFrame(rows, columns=["session", "what", "node", "block", "log"])
    wide = {
        what: one.pivot(index="block", columns="node", values="log")
        for what, one in table.groupby("what")
    }
    chosen = {what: frame for what, frame in wide.items() if any(word in what for word in whats)}
    nodes = sorted(table.node.unique(), key=lambda name: int(name[1:]))
    return {what: frame[nodes].to_numpy() for what, frame in chosen.items()}, nodes, units


def year(
    seed,
    session_sd=0.005,
    plant=None,
    whats=("sends", "receives"),
    nights=NIGHTS,
    kernel=lambda night: "6.1",
):
    """A history whose nights draw from the stored blocks; `plant(what, values)` changes log speeds
    (nights, nodes) in place.
    """
    random = np.random.default_rng(seed)
    blocks, nodes, units = stored_blocks(*whats)
    common, frames = random.normal(0, session_sd, (nights, 1, 1)), []
    own = random.normal(0, session_sd / 2, (nights, 1, len(nodes)))
    for what, stored in blocks.items():
        drawn = stored[random.integers(len(stored), size=(nights, BLOCKS))]
        change = np.zeros((nights, len(nodes)))
        if plant:
            plant(what, change)
        values = drawn + common + own + random.normal(0, session_sd / 4, (nights, 1, len(nodes)))
        values = values + change[:, None, :]
        places = np.indices(values.shape).reshape(3, -1)
        frames.append(
            pd.DataFrame(
                {
                    "session": places[0],
                    "what": what,
                    "node": np.array(nodes)[places[2]],
                    "block": places[1].astype(str),
                    "log": values.ravel(),
                }
            )
        )
    sessions = tuple(
        Session(BEGIN + timedelta(days=night), {"kernel": kernel(night)}) for night in range(nights)
    )
    return History(
        sessions, pd.concat(frames, ignore_index=True), units, SWITCHES, "measured", ("simulated",)
    )
