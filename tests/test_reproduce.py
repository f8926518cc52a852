"""Findings run again: planted differences are found, what did not run is never called reproduced,
archives are checked.
"""

import itertools
import json
import math
import re
import shutil
import zipfile
from dataclasses import replace
from functools import cache

import command_line
import numpy as np
import pytest
from calibration.verdicts import of_blocks
from scipy.stats import ttest_ind
from synthetic_scale_model import scaling_campaign

from analysis import paths, planning, running
from analysis.report import rerunning, summary
from analysis.statements import notebooks
from analysis.statements.statement import T_INTERVAL, Statement
from analysis.watch import reproducing, todays_run
from analysis.watch.reproducing import judged as judged_together
from analysis.watch.reproducing import of_estimates
from runners.records import archive, manifest
from runners.records.record import FalloffError

ORIGIN = {"evidence": "emulated", "campaign": "hpl_scaling", "digest": "0"}
REFERENCE = paths.REFERENCE / "hpl_agreement-fortinet_model_simulated"
FALL = "GigE loses rate against 10GE from 2 to 8 nodes"


def finding(quantity="ratio", estimate=0.9, interval=(0.89, 0.91), n=6, **further):
    """An archived finding."""
    values = {"quantity": quantity, "unit": "1", "estimate": estimate, "interval": interval, "n": n}
    further = {"answer": "", "interval_kind": T_INTERVAL, "n_of": "block", **further}
    return Statement(**{**ORIGIN, **values, "subject": "it is so", **further})


def alone(*about, **further):
    """Two estimates, or statements, compared and judged by themselves."""
    of = of_estimates if isinstance(about[0], reproducing.Estimate) else reproducing.compare
    return judged_together([of(*about, **further)])[0]


def published(quantity, logs, **further):
    """What an experiment publishes of blocks, log ratios of shape (blocks,): the mean with its 95 %
    t interval.
    """
    half = 2.5706 * np.std(logs, ddof=1) / math.sqrt(len(logs))  # Student's t, 5 degrees of freedom
    mean = np.mean(logs)
    ends = [math.exp(mean + sign * half) for sign in (-1, 0, 1)]
    told = {"ratio": ends, "gain": [end - 1 for end in ends], "fall": [1 - end for end in ends]}
    low, estimate, high = told[quantity]
    return finding(quantity, estimate, tuple(sorted((low, high))), len(logs), **further)


@pytest.mark.parametrize("quantity", ["ratio", "gain", "fall"])
def test_published_intervals_compare_as_the_blocks_do(quantity):
    """From estimates and intervals alone the comparison is that of the blocks."""
    random = np.random.default_rng(2)
    reference, today = (random.normal(mean, 0.01, 6) for mean in (-0.14, -0.12))
    whole = alone(of_blocks(reference), of_blocks(today), 0.05)
    found = alone(published(quantity, reference), published(quantity, today), 0.05)
    assert found.kind == whole.kind and found.interval == pytest.approx(whole.interval, rel=1e-4)


BARE = finding(interval=None, answer="yes")


@pytest.mark.parametrize(
    ("published", "changed", "kind"),
    [
        (finding(), {"estimate": 0.91, "interval": (0.9, 0.92)}, "reproduced"),
        (finding(), {"estimate": 0.7, "interval": (0.69, 0.71)}, "not reproduced"),
        (finding(), {"estimate": 0.91, "interval": (0.5, 1.3)}, "too short to tell"),
        (finding(), {"estimate": 0.86, "interval": (0.85, 0.87)}, "too short to tell"),
        (
            finding(answer="yes", quantity="fall"),
            {"estimate": 0.91, "answer": "refused", "quantity": "fall"},
            "too short to tell",
        ),
        (
            finding("fall", 0.1, (0.09, 0.11), answer="yes"),
            {
                "quantity": "fall",
                "estimate": 0.105,
                "interval": (0.095, 0.115),
                "answer": "undecided",
            },
            "reproduced",
        ),
        (finding(), {"estimate": 0.91, "interval": None, "n": 1}, "reproduced"),
        (finding(), {"estimate": 0.7, "interval": None, "n": 1}, "not reproduced"),
        (
            finding("fall", 0.1, (0.09, 0.11), answer="yes"),
            {"quantity": "fall", "estimate": 0.06, "interval": (0.055, 0.065), "answer": "same"},
            "not reproduced",
        ),
        # How much it scatters is not known: it differs only where the answers exclude each other.
        (BARE, {"estimate": 0.91, "answer": "yes"}, "reproduced"),
        (BARE, {"estimate": 0.5, "interval": None, "answer": "yes"}, "too short to tell"),
        (BARE, {"estimate": 0.5, "interval": None, "answer": "no"}, "not reproduced"),
    ],
)
def test_each_kind_of_verdict(published, changed, kind):
    """By the interval of the ratio against the margin; answers that exclude each other reproduce
    nothing.
    """
    assert alone(published, finding(**changed), 0.05).kind == kind


EXACT = finding("fall", interval=None, evidence="simulated", answer="yes")


@pytest.mark.parametrize(
    ("published", "changed", "margin", "kind", "reason"),
    [
        (finding(n=1), {}, 0.05, "too short to tell", "Too few blocks have a value."),
        (
            BARE,
            {"estimate": 0.5, "answer": "yes"},
            0.05,
            "too short to tell",
            "It differs beyond the margin, and was archived without an interval.",
        ),
        (
            EXACT,
            {"answer": "same"},
            0.05,
            "too short to tell",
            "Neither inside the margin of 5 % nor beyond it is shown.",
        ),
        # A margin of 0 holds what repeats itself, and nothing else.
        (
            EXACT,
            {},
            0.0,
            "reproduced",
            "The interval of the difference lies inside the margin of 0 %.",
        ),
        (
            EXACT,
            {"estimate": 0.89},
            0.0,
            "not reproduced",
            "The interval of the difference lies wholly beyond the margin of 0 %.",
        ),
        (
            BARE,
            {"estimate": 0.91},
            0.0,
            "too short to tell",
            "It differs beyond the margin, and was archived without an interval.",
        ),
    ],
)
def test_what_is_not_tested_has_a_reason_of_its_own(published, changed, margin, kind, reason):
    """No number of statements and no Holm where nothing scatters, or its scatter is unknown."""
    found = alone(published, replace(published, **changed), margin)
    assert (found.kind, found.reason) == (kind, reason)


def test_a_stored_margin_of_0_stays_0():
    """Only a design without a margin has the default."""
    dataset = planted()
    design = json.loads(dataset.attrs["design"])
    for margin, wanted in ((0, 0), (None, reproducing.MARGIN), (0.02, 0.02)):
        stored = dataset.assign_attrs(design=json.dumps(design | {"margin": margin}))
        assert reproducing.margin_of(stored) == wanted


def test_the_interval_of_blocks_is_welchs():
    """A noisy day is not taken for as calm as the reference; too few blocks have none; a simulation
    is exact.
    """

    def compared(reference, today, exact=False):
        return alone(*(of_blocks(logs, exact) for logs in (reference, today)), 0.05)

    pattern = np.array([-1.2, -0.6, 0.0, 0.6, 1.2])
    reference = 0.01 * pattern - 0.14
    for scatter in (0.01, 0.03):
        today = scatter * pattern[1:4] - 0.13
        found = compared(reference, today)
        low, high = np.log(found.interval)
        welch = ttest_ind(today, reference, equal_var=False).confidence_interval(found.confidence)
        assert (low, high) == pytest.approx(tuple(welch))
    for then, now in ((reference, []), (reference[:1], reference), (reference, [np.nan])):
        found = compared(then, now)
        assert found.kind == "too short to tell" and found.interval is None
    assert compared([-0.1], [-0.1], exact=True).kind == "reproduced"
    assert compared([-0.1], [-0.2], exact=True).kind == "not reproduced"


def test_chance_among_many_findings_is_no_difference():
    """One of 300 that differs by chance stays open; one that differs beyond it does not."""

    def differs(size, error=0.01):
        return reproducing.Compared(math.log(1 - size), error, 5.0, ("", ""), 0.05, 0.05, 0.05)

    many = [differs(0.0) for _ in range(298)]
    found = judged_together([differs(0.1), differs(0.1, 1e-4), *many])
    assert judged_together([differs(0.1)])[0].kind == "not reproduced"
    assert [one.kind for one in found[:3]] == ["too short to tell", "not reproduced", "reproduced"]
    assert "among 300" in found[0].reason and found[0].confidence > 0.999


def test_a_verdict_among_many_follows_from_its_interval():
    """Of 40 findings at a time: what is reproduced lies within the margin, what is not lies beyond
    it, and the rest reaches across its end."""
    random, limit, seen = np.random.default_rng(6), -math.log(0.95), set()
    for _ in range(30):
        true = random.choice([0.0, 0.05, 0.1], 40)
        before, after = random.normal(0, 0.015, (2, 40, 5))
        found = [
            of_estimates(of_blocks(then), of_blocks(now + off), 0.05)
            for then, now, off in zip(before, after, true)
        ]
        for one in judged_together(found):
            low, high = np.log(one.interval)
            seen.add((one.kind, one.confidence > 0.9))
            inside, beyond = max(-low, high) <= limit, low > limit or high < -limit
            wanted = {"reproduced": inside, "not reproduced": beyond}
            assert wanted.get(one.kind, not inside and not beyond)
    assert seen >= {("reproduced", False), ("not reproduced", True), ("too short to tell", True)}


def planted(off=None, preset="full", seed=1, blocks=6):
    """Synthetic runs of the scaling campaign, under the names of its plan's trials."""
    dataset = scaling_campaign(off, noise=0.002, blocks=blocks, preset=preset, seed=seed)
    plan = planning.plan_campaign("hpl_scaling", preset=preset)
    ids = [trial.id for trial in itertools.chain(*plan.blocks)][: dataset.sizes["trial"]]
    return dataset.assign_coords(trial_id=dataset.trial_id.copy(data=np.array(ids)))


@cache
def stated():
    """What notebooks state on the planted campaign."""
    return notebooks.stated({"hpl_scaling": planted()})


def judged(today):
    """The verdicts on the scaling experiment's findings, by statement, for a quick run."""
    published = {"hpl_scaling": planted()}
    again = todays_run.at_points_of(published["hpl_scaling"], today)
    told = reproducing.verdicts(
        published, stated(), {"hpl_scaling": again}, {"hpl_scaling": today}, {}
    )
    return {one.statement.subject: one for one in told if one.notebook == "40_hpl_scaling"}


def test_a_planted_change_is_not_reproduced():
    """The same truth is reproduced where it ran, a lost tenth is not; what needs other nodes stays
    open.
    """
    same = judged(planted(preset="quick", seed=2, blocks=3))
    assert same[FALL].kind == "reproduced"
    elsewhere = [one for name, one in same.items() if "to 36 nodes" in name]
    assert elsewhere and {one.kind for one in elsewhere} == {"too short to tell"}
    assert reproducing.exit_code(same.values()) == 2
    other = judged(planted({("gige", 8): 0.9}, preset="quick", seed=2, blocks=3))
    assert other[FALL].kind == "not reproduced" and "margin" in other[FALL].reason
    assert reproducing.exit_code(other.values()) == 1
    text = reproducing.text([*other.values()])
    assert re.search(rf"not reproduced +{FALL}\n +archived falls off, .*; today falls off, ", text)


def test_what_was_not_run_says_why():
    """Each finding of a campaign that is not there has its kind and reason; all reproduced is 0
    only for all.
    """
    published, why = {"hpl_scaling": planted()}, ("cannot run here", "There is no mpirun.")
    told = reproducing.verdicts(published, stated(), {}, {}, {"hpl_scaling": why})
    assert told and {(one.kind, one.reason) for one in told} == {why}
    assert reproducing.exit_code(told) == 2
    assert reproducing.exit_code([replace(one, kind="reproduced") for one in told]) == 0


def test_the_shortest_run_first_then_whole_ones():
    """Campaigns with a primary finding first; what time is left makes them whole; nothing exceeds
    it.
    """

    def of(**seconds):
        return {name: rerunning.Rerun(None, None, took) for name, took in seconds.items()}

    short, whole = of(main=50.0, long=500.0, side=10.0), of(main=300.0, long=900.0, side=20.0)
    for seconds, expected in {
        5: {},
        55: {"main": 50.0},
        60: {"main": 50.0, "side": 10.0},
        70: {"main": 50.0, "side": 20.0},
        320: {"main": 300.0, "side": 20.0},
    }.items():
        chosen = rerunning.choose(short, whole, {"main"}, seconds)
        assert {name: one.seconds for name, one in chosen.items()} == expected


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Verdicts are kept in a folder of the test's own."""
    monkeypatch.setattr(paths, "REPRODUCED", tmp_path / "reproduced")
    return tmp_path


def packed(folder, *sources, change=lambda text: text):
    """A zip file as `falloff evidence archive` writes it, with campaigns whose transcripts are
    changed and recorded so, and its content."""
    content = folder / "content"
    for source in sources:
        within = content / "data" / "reference" / source
        (within / "transcripts").mkdir(parents=True)
        for name in ("trials.json", "journal.jsonl", "provenance.json"):
            shutil.copy(paths.REFERENCE / source / name, within)
        for name, text in archive.read(paths.REFERENCE / source / archive.NAME):
            (within / "transcripts" / f"{name}.json").write_text(change(text.decode()))
        manifest.write(within)
    file = folder / "archive.zip"
    with zipfile.ZipFile(file, "w") as made:
        for part in content.rglob("*"):
            made.write(part, part.relative_to(content))
    return file, content / "data" / "reference"


def test_bad_archives_are_refused(own):
    """In a line, with the exit code that is no verdict; nothing is kept."""
    file, within = packed(own, "hpl_messages-scale_model")
    (own / "empty").mkdir()
    (own / "cut.zip").write_bytes(file.read_bytes()[:-200])
    (within / "hpl_messages-scale_model" / "journal.jsonl").write_text("{}\n")
    foreign = packed(own / "foreign", "twin_load-scale_model")[0]
    for name, complaint in {
        "nosuch": "there is no .*nosuch: name a file",
        "cut.zip": "no readable zip file",
        "empty": "holds no campaign's folder",
        "content": "not as it was recorded: hpl_messages-scale_model: ",
        foreign: "no notebook here states anything",
    }.items():
        done = command_line.run("reproduce", str(own / name))
        assert done.returncode == 3 and re.match(f"falloff: .*{complaint}", done.stderr), (
            done.stderr
        )
        assert len(done.stderr.splitlines()) <= 2 and not paths.REPRODUCED.exists()


@pytest.mark.parametrize(
    ("theirs", "code", "answer"),
    [("theirs", 2, "'theirs', which is not described here"), ("{own}/theirs", 3, "a name has")],
)
def test_an_archive_never_says_what_is_executed(own, theirs, code, answer):
    """A testbed that only the archive describes is not run, nor one at a path of its choice."""
    name = theirs.format(own=own)
    within = packed(own, "hpl_paper_simulated-smith")[1] / "hpl_paper_simulated-smith"
    plan = json.loads((within / "trials.json").read_text())
    plan["testbed"] |= {"name": name, "tools": {"smpirun": str(own / "planted")}}
    (within / "trials.json").write_text(json.dumps(plan))
    manifest.write(within)
    shutil.copy(paths.TESTBEDS / "smith.toml", own / "theirs.toml")
    (own / "planted").write_text(f"#!/bin/sh\ntouch {own}/executed\n")
    (own / "planted").chmod(0o755)
    done = command_line.run("reproduce", str(own / "content"), "--minutes", "0.5")
    assert done.returncode == code and answer in (done.stdout if code == 2 else done.stderr)
    assert not (own / "executed").exists()


def slower(text):
    """A transcript of HPL with GigE's rates up to 8 nodes printed a fifth lower, and the times
    longer.
    """
    transcript = json.loads(text)
    point = transcript["trial"]["point"]
    if point.get("interconnect") == "gige" and point.get("nodes") in (4, 6, 8):
        for one in transcript["executions"]:
            one["stdout"] = re.sub(
                r"^(W\S+(?: +\d+){4}) +(\S+) +(\S+)$",
                lambda row: f"{row[1]} {1.25 * float(row[2]):18.2f} {float(row[3]) / 1.25:18.3e}",
                one["stdout"],
                flags=re.M,
            )
    return json.dumps(transcript)


@pytest.mark.more
def test_a_true_archive_is_reproduced_and_a_planted_one_is_not(own):
    """End to end: 2 to 8 nodes are simulated again, and GigE's fall comes out; an archive with
    other rates says otherwise, of the very trials that were run."""
    if missing := running.obstacles(planning.plan_campaign("hpl_paper_simulated")):
        pytest.skip(missing[0])
    rows, first = {}, None
    for name, change in {"true": str, "planted": slower}.items():
        file, within = packed(own / name, "hpl_paper_simulated-smith", change=change)
        kept = paths.REPRODUCED / reproducing.digest(within.iterdir())[:8]
        if first:
            shutil.copytree(first, kept)
        done = command_line.run("reproduce", str(file), "--minutes", "1")
        record = json.loads((kept / reproducing.RECORD).read_text())
        rows[name] = {row["statement"]["subject"]: row for row in record["statements"]}, done
        first = kept
    subject = "GigE loses rate against 10GE from 2 to 8 nodes"
    told, done = rows["true"]
    assert told[subject]["verdict"] == "reproduced" and told[subject]["ratio"] == 1
    assert done.returncode in (0, 2) and ", 0 not reproduced," in done.stdout
    told, done = rows["planted"]
    assert told[subject]["verdict"] == "not reproduced" and done.returncode == 1


def test_the_first_page_has_it_where_it_was_run(own):
    """The record of the very archive that the report shows, and no other's."""
    digest = reproducing.digest([REFERENCE])
    told = [reproducing.StatementVerdict("x", finding(), "not reproduced", "It differs.")]
    about = {
        "archive_sha256": digest,
        "ended": "2026-11-23T08:00:00",
        "machine": "here",
        "minutes": 3.0,
    }
    (paths.REPRODUCED / "a").mkdir(parents=True)
    file = paths.REPRODUCED / "a" / reproducing.RECORD
    file.write_text(reproducing.as_json(told, about))
    records = reproducing.saved_runs(str(REFERENCE))
    page = summary.today({}, records).text
    assert "1 not reproduced" in page and "*not reproduced*: it is so." in page
    assert reproducing.saved_runs(str(paths.REFERENCE / "hpl_messages-scale_model")) == []
    file.write_text("{}")
    with pytest.raises(FalloffError, match="damaged .*: delete it"):
        reproducing.saved_runs(str(REFERENCE))
