"""How often `falloff history` raises a false alarm, and how soon it names a loss, in synthetic
years (`make calibrate`).

A node's value in a session is a common one, its own one, both with the scatter between sessions,
and that of its blocks.
"""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.statistics import course_changes
from analysis.watch.history_changes import Course, split

NORMAL, HEAVY, BAD, ALIKE = "normal", "heavy tails", "bad nights", "neighbours alike"
_OFTEN_BAD, _WORSE = 0.1, 5  # the share of nights that scatter so much more
# Of neighbouring sessions, where they are alike.
CORRELATIONS = {ALIKE: 0.3, "correlation 0.6": 0.6, "correlation 0.8": 0.8}
_BEFORE = 60  # sessions before a planted loss
_AFTER = 120


def year(
    random: np.random.Generator,
    nodes: int,
    session_sd: float,
    kind: str,
    within: float,
    sessions: int = course_changes.YEAR,
) -> np.ndarray:
    """Log speeds (sessions, nodes) of an unchanged cluster; `within` is the standard deviation of a
    session's mean within it."""
    shape = (sessions, nodes + 1)
    noise = scatter(random, shape, kind)
    if r := CORRELATIONS.get(kind):
        for night in range(1, sessions):
            noise[night] = r * noise[night - 1] + np.sqrt(1 - r**2) * noise[night]
    own = session_sd * noise[:, :1] + session_sd * noise[:, 1:]
    return own + random.normal(0, within, (sessions, nodes))


def scatter(random: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Deviates of a kind; of standard deviation 1 but for bad nights, a tenth of which scatter five
    times as much.
    """
    if kind == HEAVY:
        return random.standard_t(3, shape) / np.sqrt(3)
    noise = random.normal(0, 1, shape)
    if kind == BAD:
        noise *= np.where(random.random(shape) < _OFTEN_BAD, _WORSE, 1)
    return noise


def tested(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The common course and the nodes' rests, over (courses, sessions)."""
    names = tuple(f"n{number}" for number in range(1, values.shape[1] + 1))
    course = Course("rate", "", False, names, values, np.ones(len(values)), np.nan, np.nan)
    found = [one.values for one in split(0, course, {})]
    return np.array(found[:1]), np.array(found[1:])


def alarms(values: np.ndarray) -> int:
    """How many changes are named in a cluster's year; a change that several nodes share counts
    several times.
    """
    weights, count = np.ones(len(values)), 0
    for courses in tested(values):
        threshold = course_changes.log_threshold(2 * len(courses))
        alike = course_changes.correlation(courses)
        count += sum(map(len, course_changes.courses(courses, weights, threshold, alike)))
    return count


def simulate_alarms(settings: Mapping) -> pd.DataFrame:
    """False alarms a year, by scatter between sessions, number of nodes and kind of scatter, a row
    each.
    """
    sizes, rows = settings["history"], list[dict]()
    within = sizes["run_sd"] / np.sqrt(sizes["blocks"])
    cells = itertools.product(sizes["kinds"], sizes["nodes"].items(), sizes["session_sds"])
    for kind, (nodes, years), sd in cells:
        random = np.random.default_rng([settings["seed"], 3, len(rows)])
        counts = [alarms(year(random, int(nodes), sd, kind, within)) for _ in range(years)]
        row = {"kind": kind, "nodes": int(nodes), "session_sd": sd, "years": years}
        rows.append(row | {"alarms_a_year": np.mean(counts)})
    return pd.DataFrame(rows)


def simulate_losses(settings: Mapping) -> pd.DataFrame:
    """How soon a loss of all nodes, or of one, is named after 60 sessions, by scatter and number of
    nodes, a row each.

    `found` is the share named within 120 sessions, `median` and `most` (90 %) how many sessions of
    the loss that took; NaN where fewer are found.
    """
    sizes, rows = settings["history"], list[dict]()
    within = sizes["run_sd"] / np.sqrt(sizes["blocks"])
    cells = itertools.product(sizes["nodes"], sizes["session_sds"], sizes["losses"], ("all", "one"))
    for nodes, sd, loss, where in cells:
        random = np.random.default_rng([settings["seed"], 4, len(rows)])
        total = _BEFORE + _AFTER
        # A node's rest is that of any other: many clusters' common courses, or a node's own ones.
        own = random.normal(0, np.hypot(sd, within), (sizes["years_of_losses"], total))
        own[:, _BEFORE:] += np.log1p(-loss)
        courses = 1 if where == "all" else int(nodes)
        named = course_changes.alarms(
            own, np.ones(total), course_changes.log_threshold(2 * courses)
        )
        took = np.where(named >= _BEFORE, named - _BEFORE + 1.0, np.inf)
        median, most = np.quantile(took, (0.5, 0.9), method="higher")
        row = {"nodes": int(nodes), "session_sd": sd, "loss": loss, "where": where}
        row |= {"found": np.isfinite(took).mean(), "median": median, "most": most}
        rows.append(row)
    return pd.DataFrame(rows).replace(np.inf, np.nan)


def simulate_intervals(settings: Mapping) -> pd.DataFrame:
    """How often the 95 % intervals of size and date contain the planted ones, by kind of scatter,
    sessions since the loss, and loss in standard deviations of a session, a row each.

    Only losses that are named once have intervals; `named` is their share.
    """
    sizes, rows = settings["history"]["intervals"], list[dict]()
    threshold = course_changes.log_threshold(2 * sizes["nodes"])
    cells = itertools.product(sizes["kinds"], sizes["after"], sizes["losses"])
    for kind, after, loss in cells:
        random = np.random.default_rng([settings["seed"], 6, len(rows)])
        size, date = list[bool](), list[bool]()
        for _ in range(sizes["courses"]):
            values = 0.01 * scatter(random, (_BEFORE + after,), kind)
            values[_BEFORE:] -= 0.01 * loss
            if len(found := course_changes.course(values, None, threshold)) == 1:
                (shift,) = found
                size.append(shift.ends[0] <= -0.01 * loss <= shift.ends[1])
                date.append(shift.low <= _BEFORE <= shift.high)
        row = {"kind": kind, "after": after, "loss": loss, "named": len(size) / sizes["courses"]}
        rows.append(row | {"size": np.mean(size), "date": np.mean(date)})
    return pd.DataFrame(rows)
