"""A model's name, a table and a fit as people bring them: each is taken rightly, or refused in words."""

import json

import numpy as np
import pytest
from command_line import run

from analysis import models, tables
from analysis.fitting import compare
from runners.record import FalloffError


def test_models_have_the_names_that_people_know(tmp_path):
    """usl, amdahl and hockney work beside the long ones."""
    assert models.find("usl") is models.find("universal_scalability")
    assert {models.find(name).name for name in ("Amdahl", "hockney")} == {"amdahl", "hockney"}
    table = tmp_path / "mine.csv"
    rows = [f"{n},{100 * n / (1 + 0.05 * (n - 1))}" for n in (1, 2, 4, 8, 16)]
    table.write_text("nodes,rate\n" + "\n".join(rows) + "\n")
    fit = json.loads(run("fit", "usl", str(table), "--x", "nodes", "--y", "rate").stdout)
    assert fit["estimates"]["sigma"] == pytest.approx(0.05, rel=1e-3)


def test_a_word_in_a_column_of_numbers_is_named(tmp_path):
    """With the line and the word."""
    table = tmp_path / "mine.csv"
    table.write_text("nodes,rate\n1,10\n2,fast\n4,40\n")
    done = run("fit", "constant", str(table), "--x", "nodes", "--y", "rate")
    assert done.returncode == 1 and "'fast' in line 3" in done.stderr
    with pytest.raises(FalloffError, match="numbers belong"):
        tables.require_numbers(tables.read(table, "nodes", "rate"), "nodes", "rate")


def test_an_interval_holds_its_estimate_or_is_refused():
    """A rate that only grows has no capacity: 0 over all points, and 1/16, the last number of nodes, in every block."""
    nodes = np.array([1.0, 2, 4, 8, 16])
    noise = np.random.default_rng(3)
    tables_ = [np.outer([1.0, 1.01, 0.99], nodes)]
    for _ in range(20):
        tables_.append(nodes / (1 + 0.03 * (nodes - 1)) * noise.normal(1, 0.3, (3, 5)).clip(0.05))
    names = ("universal_scalability", "shared_capacity", "amdahl", "power_law")
    kinds = []
    for rates in tables_:
        for one in compare.compare(map(models.find, names), nodes, rates):
            for name, (low, high) in one.intervals.items():
                slack = 2e-6 * max(abs(low), abs(high), abs(one.pooled.estimates[name]))
                assert low - slack <= one.pooled.estimates[name] <= high + slack
            kinds.append(one.interval_kind)
    assert any("sigma is 0 over all points" in kind for kind in kinds)
    assert any(kind.startswith("t interval") for kind in kinds)
