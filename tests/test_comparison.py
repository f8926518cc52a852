"""`falloff compare`: planted changes are found, nothing else is, and bad input is refused in a
line.
"""

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import synthetic
from calibration.verdicts import simulate_comparison
from command_line import ROOT, run
from executed import executed, text
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.imports import importing
from analysis.statistics import same as sameness
from analysis.statistics.calibration import AT_MOST, load, table
from analysis.statistics.judgement import UNDECIDED, holm_levels, log_margin
from analysis.statistics.same import FASTER, SAME, SLOWER
from analysis.watch import comparison, samples
from analysis.watch.comparison import compare
from runners.records.record import FalloffError

HPL = ROOT / "tests" / "transcripts" / "hpl" / "2.0-several-rows.txt"
REFERENCE = ROOT / "data" / "reference"
NODES = (1, 2, 4, 8, 16)


def sample(name, seed, falls, **chance):
    """A synthetic campaign of 8 blocks as a sample."""
    dataset = synthetic.campaign(8, falls, noise=0.004, block_effect=0.002, seed=seed, **chance)
    return samples.of_dataset(dataset, name)


def write(file, seed, slower=1.0, blocks=8, noise=0.005, names=("nodes", "rate", "block"), power=1):
    """A CSV file of rates over nodes, at 16 nodes times `slower`; with the power -1 of times
    instead of rates.
    """
    random = np.random.default_rng(seed)
    rows = [
        (n, (3 * n**0.9 * random.normal(1, noise) * (slower if n == 16 else 1)) ** power, block)
        for block, n in product(range(blocks), NODES)
    ]
    pd.DataFrame(rows, columns=list(names)).to_csv(file, index=False)
    return str(file)


def test_a_planted_fall_is_found_where_it_is_and_nowhere_else():
    """A network that loses 9 % more at 8 nodes: that point and its contrasts are slower by that, 1
    and 2 nodes are the same; of an unchanged cluster all points and contrasts are."""
    before, lost = sample("a", 1, {"gige": 0.13}), {"gige": 1 - 0.87 * 0.91}
    same = compare(before, sample("b", 2, {"gige": 0.13}))
    assert {one.answer for one in same.changes} == {SAME} and same.answer == SAME
    assert sorted(len(one.points) for one in same.changes) == [1] * 12 + [4] * 3
    found = compare(before, sample("b", 2, lost))
    answers = {one.what: one for one in found.changes}
    for what in (
        "GigE, 8 nodes",
        "GigE / 10GE, 2 to 8 nodes",
        "GigE / unlimited links, 2 to 8 nodes",
    ):
        assert answers[what].answer == SLOWER and answers[what].low < 0.91 < answers[what].high
    alike = [
        what for what in answers if "GigE" not in what or what.endswith((" 1 node", " 2 nodes"))
    ]
    assert {answers[what].answer for what in alike} == {SAME} and len(alike) > 8
    back = compare(sample("b", 2, lost), before)
    assert (found.answer, back.answer) == (SLOWER, FASTER)
    assert len(back.with_answer(FASTER)) == len(found.with_answer(SLOWER))


def test_the_interval_holds_for_any_scatter_and_a_change_has_holms_p():
    """Scipy's standard error with the freedom of the smaller side; a p that is small alone is not
    among thirty.
    """
    random = np.random.default_rng(3)
    old, new = random.normal(0, 0.01, (30, 6)), random.normal(0, 0.03, (30, 4))
    new[0, 1] = np.nan
    found = sameness.differences(old, new)
    p = sameness.p_values(found, 0.03)[1]
    for row, freedom in ((0, 2), (7, 3)):
        test = stats.ttest_ind(new[row][np.isfinite(new[row])], old[row], equal_var=False)
        error = found.difference[row] / test.statistic
        assert found.error[row] == pytest.approx(error) and found.freedom[row] == freedom
        assert p[row] == pytest.approx(2 * stats.t.sf(abs(test.statistic), freedom))
    decided, *_ = multipletests(p, method="holm")
    assert (p <= holm_levels(p)).tolist() == decided.tolist()
    found.difference[:] = 0
    found.difference[5] = -4.5 * found.error[5]
    alone = sameness.Differences(found.difference[5:6], found.error[5:6], found.freedom[5:6])
    assert 0.05 / 30 < sameness.p_values(found, 0.001)[1][5] < 0.05
    assert sameness.decide(alone, 0.001).answer == [SLOWER]
    assert sameness.decide(found, 0.001).answer[5] == UNDECIDED


def test_a_change_follows_from_the_interval_beside_it():
    """In synthetic comparisons of 1 to 30 statements: the same lies within the margin, a change
    excludes 0, and what is undecided does neither."""
    random, seen = np.random.default_rng(9), set()
    for number in (1, 2, 7, 30) * 25:
        true, sd = (
            random.choice([0.0, 0.02, 0.05, -0.04], number),
            random.choice([0.003, 0.01, 0.03]),
        )
        old, new = (sd * random.normal(size=(number, blocks)) for blocks in (6, 4))
        decided = sameness.decide(sameness.differences(old, new + true[:, None]), 0.03)
        assert ((decided.confidence >= 0.9 - 1e-9) & (decided.confidence < 1)).all()
        for answer, low, high in zip(decided.answer.tolist(), decided.low, decided.high):
            seen.add(answer)
            within = max(-low, high) <= log_margin(0.03)
            wanted = {SAME: within, SLOWER: high < 0, FASTER: low > 0}
            assert wanted.get(answer, low <= 0 <= high and not within)
    assert seen == set(sameness.ANSWERS)


def test_what_has_no_scatter_or_a_single_block():
    """A simulation is compared as it is; a single block is undecided, however large the change."""
    exact = sameness.differences([[0.0], [0.0], [0.0]], [[-0.01], [-0.05], [0.05]], exact=True)
    assert sameness.decide(exact, 0.03).answer.tolist() == [SAME, SLOWER, FASTER]
    single = sameness.differences([[0.0, 0.01, -0.01]], [[-0.5, np.nan, np.nan]])
    decided = sameness.decide(single, 0.03)
    assert decided.answer.tolist() == [UNDECIDED] and np.isnan([decided.low, decided.high]).all()
    assert single.difference == pytest.approx(-0.5)


def test_what_is_not_tested_does_not_count_for_holm(tmp_path):
    """One statement that scatters, beside a single block and one without scatter, is judged as by
    itself, and the rule counts no other; beside one that scatters it is open."""
    scattering = [-0.01, -0.003, 0.003, 0.01]
    single, still = [(2, 0, 0.0)], [(3, block, 0.0) for block in range(4)]

    def compared(*further):
        sides, points = [], [(1, *row) for row in enumerate(scattering)] + [*further]
        for name, change in (("old", 0.0), ("new", -0.024)):
            rows = [(n, np.exp(log + change * (n == 1)), block) for n, block, log in points]
            file = tmp_path / f"{name}.csv"
            pd.DataFrame(rows, columns=["nodes", "rate", "block"]).to_csv(file, index=False)
            sides.append(samples.of_csv(file, "nodes", "rate", "block", "higher"))
        return compare(*sides)

    alone, mixed = compared(), compared(*single, *still)
    assert [one.answer for one in mixed.changes] == [SLOWER, UNDECIDED, SAME]
    for name in ("low", "high", "confidence"):
        assert getattr(mixed.changes[0], name) == getattr(alone.changes[0], name)
    assert "(1 statement, Holm)" in comparison.text(mixed)
    both = compared(*((4, *row) for row in enumerate(scattering)))
    assert both.changes[0].answer == UNDECIDED
    assert "(2 statements, Holm)" in comparison.text(both)


def test_a_csv_file_says_nothing_of_what_else_changed(tmp_path):
    """Neither beside another one nor beside a campaign; of imported files other facts are known."""
    of_csv = samples.read(ROOT / write(tmp_path / "a.csv", 1), "nodes", "rate", "block", "higher")
    other = replace(of_csv, source="b.csv", digests=frozenset())
    sentence = "What else changed is not known: a CSV file says nothing of machine and settings."
    for new in (other, replace(other, facts={"kernel": "6.1"}, is_recorded=True)):
        words = comparison.text(compare(of_csv, new))
        assert sentence in words and "not recorded" not in words and "Nothing else" not in words
    imported = [replace(side, facts={"setting/N": "1"}) for side in (of_csv, other)]
    assert "network cards and switch: not recorded" in comparison.text(compare(*imported))


@pytest.mark.parametrize(
    ("slower", "noise", "code", "answer"),
    [
        (1, 0.003, 0, SAME),
        (0.93, 0.003, 1, SLOWER),
        (1.08, 0.003, 0, FASTER),
        (1, 0.2, 2, UNDECIDED),
    ],
)
def test_two_csv_files_need_no_options(slower, noise, code, answer, tmp_path):
    """The exit code is the answer's; every point of the figure and the JSON is there."""
    old = write(tmp_path / "old.csv", 1, noise=noise)
    new = write(tmp_path / "new.csv", 2, slower, noise=noise)
    figure = tmp_path / "made" / "figure.svg"
    done = run("compare", old, new, "--figure", str(figure))
    assert done.returncode == code and answer in done.stdout.splitlines()[0].lower()
    assert figure.read_text().startswith("<?xml")
    told = json.loads(run("compare", old, new, "--figure", str(figure), "--json").stdout)
    assert told["answer"] == answer and {one["n_old"] for one in told["statements"]} == {8}
    changed = [one["what"] for one in told["statements"] if one["answer"] == answer]
    assert changed == ["16 nodes"] if slower != 1 else len(told["statements"]) == len(NODES)


def test_other_columns_times_and_the_lines_of_a_row(tmp_path):
    """Columns are named by options, a shorter time is faster, and a row leads to its lines."""
    names = ("size", "seconds", "run")
    old = write(tmp_path / "old.csv", 1, names=names, power=-1)
    new = write(tmp_path / "new.csv", 2, 0.93, names=names, power=-1)
    columns = "--x size --y seconds --block run --better lower --figure".split()
    columns.append(str(tmp_path / "f.svg"))
    told = json.loads(run("compare", old, new, *columns, "--json").stdout)
    slow = told["statements"][-1]
    assert slow["answer"] == SLOWER and slow["interval"][0] < 0.93 < slow["interval"][1]
    assert slow["new"] > slow["old"]
    lines = run("compare", old, new, *columns, "--transcripts", "5").stdout
    assert lines.count("OLD line") == lines.count("NEW line") == 8
    assert (tmp_path / "new.csv").read_text().splitlines()[5] in lines


def refused(old, new):
    """What `falloff compare` answers in a line, with the exit code of a mistake."""
    done = run("compare", str(old), str(new))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1)
    return done.stderr


BAD_FILES = {
    "nodes,time,block\n1,2,3\n": (
        "no column 'rate'; it has: nodes, time, block. Name columns by --x"
    ),
    "nodes,rate,block\n1,fast,1\n": "numbers belong: 'fast' in line 2",
    "nodes,rate,block\n1,3,1\n\n2,0,1\n": "column 'rate' has to be above 0 in line 4",
    "nodes,rate,block\n1,3,1\n1,4,1\n": "block 1 has two rows at nodes = 1",
    "nodes,rate,block\n1,3,\n": "'nodes' or 'block' is missing in line 2",
    "nodes,rate,block\n": "has no value of rate",
    "nodes,rate,block\n3,3,1\n3,3,2\n": "no point in common: nodes is",
    "": "cannot read",
}


def test_what_cannot_be_compared_is_refused_in_a_line(tmp_path):
    """Bad files with the line, folders that are no campaign, other kinds of evidence; another N is
    another point.
    """
    good, bad = write(tmp_path / "good.csv", 1), tmp_path / "bad.csv"
    for content, answer in BAD_FILES.items():
        bad.write_text(content)
        assert answer in refused(good, bad)
    payload = REFERENCE / "hpl_messages-scale_model"
    for old, new, answer in (
        (good, "no-such-file", "no-such-file"),
        ("data", "README.md", "no campaign's folder"),
        (REFERENCE, "data", "holds several campaigns"),
        (payload, payload, "name two measurements"),
        (payload, REFERENCE / "oversubscription_hpl-nemo", "kinds of evidence are not compared"),
        (payload, REFERENCE / "frame_size_limit-paths", "no valid rate or time"),
    ):
        assert answer in refused(old, new)
    assert run("compare", good).returncode == 3
    old = synthetic.campaign(3, seed=1)
    new = old.assign_coords(N=old.N + 64)
    with pytest.raises(FalloffError, match="no point in common: N is .* in OLD and .* in NEW"):
        compare(samples.of_dataset(old, "a"), samples.of_dataset(new, "b"))


def test_what_else_changed_is_listed_once():
    """A value that differs, nodes that differ alike in one line, and what only one side has
    apart.
    """
    old, new = sample("a", 1, {}), sample("b", 2, {})
    nodes = {f"session/nodes/n{n}.cluster.org/driver": "5.1" for n in range(4)}
    before = {"kernel": "6.1", "cpus": "2", **nodes}
    after = {"kernel": "6.2", "cpus": "2", **dict.fromkeys(nodes, "5.2"), "tools/gcc": "12"}
    found = compare(replace(old, facts=before), replace(new, facts=after))
    assert found.facts[0] == ("kernel", "6.1", "6.2") and found.one_sided_facts == ("tools/gcc",)
    ((what, *values),) = found.facts[1:]
    assert what.startswith("nodes: driver of n0.cluster.org") and values == ["5.1", "5.2"]
    assert "kernel: 6.1 -> 6.2" in comparison.text(found)


def test_imported_results_are_compared_run_by_run(tmp_path):
    """Outputs of HPL from elsewhere: each result is a run of its own, and a slower rate is
    found.
    """
    text, both = HPL.read_text(), []
    for side, factor in (("old", 1.0), ("new", 0.9)):
        folder = tmp_path / side
        folder.mkdir()
        for number in range(4):
            rate = 17.61 * factor * (1 + 0.002 * number)
            (folder / f"{number}.out").write_text(text.replace("1.761e+01", f"{rate:.3e}"))
        imported = importing.read("hpl", [folder], {"interconnect": "gige"}, ())
        both.append(str(importing.keep(imported, tmp_path / side / "raw")))
    done = run("compare", *both, "--json", "--figure", str(tmp_path / "f.svg"))
    told = json.loads(done.stdout)
    slower = [one for one in told["statements"] if one["answer"] == SLOWER]
    assert done.returncode == 1 and len(slower) == 1 < len(told["statements"])
    assert slower[0]["speed_ratio"] == pytest.approx(0.9, abs=0.002) and slower[0]["n_old"] == 4


def test_references_lead_to_their_transcripts(tmp_path):
    """The stored campaigns of one cluster, hours apart: nothing is slower; a row's transcripts are
    what HPL printed.
    """
    both = [
        str(REFERENCE / f"{name}-fortinet_model") for name in ("hpl_scaling", "hpl_paper_emulated")
    ]
    done = run("compare", *both, "--figure", str(tmp_path / "f.svg"))
    assert done.returncode in (0, 2)
    # The two networks of a point are slowed down differently: their ratio is of one time scale.
    (ratio,) = re.findall(r"GigE / 10GE, 2 to 36 nodes +([\d.]+)", done.stdout)
    assert float(ratio) == pytest.approx(0.88, abs=0.02)
    assert (
        not re.search(r" (slower|faster)$", done.stdout, re.M)
        and done.stdout.count("the same\n") >= 6
    )
    printed = run("compare", *both, "--transcripts", "1").stdout
    assert "OLD b00" in printed and "NEW b00" in printed and printed.count("HPLinpack") == 8
    assert "there is no row 99" in run("compare", *both, "--transcripts", "99").stderr


def test_planted_changes_are_found_in_stored_runs():
    """The slow node where it was used, the slow link where its bytes went; what neither touches is
    not slower.
    """
    names = ("hpl_paper_emulated", "hpl_scaling", "link_bonding_tcp")
    made = executed(
        "86", **{name: samples.store.read(next(REFERENCE.glob(f"{name}-*"))) for name in names}
    )
    changes, results = made.names["changes"], made.names["results"]
    large, unchanged = made.names["large"], made.names["unchanged"]
    _, node, link = results
    is_point = large.points.map(len) == 1
    points = large[(large.scenario == node) & is_point].set_index("what").answer.to_dict()
    names = [f"{name}, {nodes} nodes" for name in ("GigE", "10GE") for nodes in (16, 24, 36)]
    assert points == dict.fromkeys(names, SLOWER)
    assert (unchanged[unchanged.scenario == node].answer == SAME).sum() >= 6
    assert SLOWER not in set(unchanged[unchanged.scenario != "nothing was changed"].answer)
    single = next(change for change in results[link].changes if change.what == "one link, 1 stream")
    assert single.answer == SLOWER and single.low < 0.97 < single.high
    points = large.answer[is_point]
    assert set(points) == {SLOWER} and len(points) >= 5
    said = text(made)
    found, planted = map(int, re.search(r"found (\d+) of (\d+) statements", said).groups())
    assert len(points) <= found <= planted and "accused none" in said
    assert set(changes[changes.scenario == "nothing was changed"].answer) <= {SAME, UNDECIDED}
    assert len(made.statements) == len(changes)


def test_the_stored_error_rates_keep_the_goals_and_are_the_codes():
    """At most 5 % wrong of each kind, within the noise of the simulation; one cell is computed
    again.
    """
    settings, rates = load(), table("comparison")
    sizes, wrong = settings["comparison"], ["wrongly_changed", "wrongly_same"]
    noise = 3 * (0.05 * 0.95 / sizes["campaigns"]) ** 0.5
    assert rates[wrong].max().max() <= AT_MOST + noise
    assert rates[wrong].max().min() > 0.02  # always 0 would test nothing
    easy = rates[(rates.truth == "one") & (rates.run_sd == 0.003) & (rates.new_blocks == 6)]
    assert easy.found.min() > 0.95
    few = {"points": [16], "blocks": [[6, 6]], "run_sds": [0.01], "new_scatters": [1]}
    again = simulate_comparison(settings | {"comparison": sizes | few | {"campaigns": 400}})
    keys = ["points", "old_blocks", "new_blocks", "run_sd", "new_scatter", "truth"]
    both = again.merge(rates, on=keys, suffixes=("", "_stored"))
    assert len(both) == 3
    for name in (*wrong, "found"):
        assert both[name].values == pytest.approx(both[f"{name}_stored"].values, abs=0.08)
