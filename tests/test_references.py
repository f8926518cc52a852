"""What is shipped can be run again: each campaign of data/reference ran on one commit that the
history has, without changes, and data/ still describes what it ran.

Those of which this does not hold yet are in data/reference/to_run_again.csv, each with its reasons
and with no other. `python tests/test_references.py` writes that file anew.
"""

import csv
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaigns import small_plan, use_echo
from command_line import run
from local_testbed import LocalTestbed

from analysis import paths, planning, running
from analysis.commands import measure
from runners.engine import campaign
from runners.records import manifest, provenance, renamed
from runners.records.journal import Folder
from runners.records.plan import Plan
from runners.records.record import FalloffError, Trial

FILE = paths.REFERENCE / "to_run_again.csv"
COLUMNS = ("reference", "commit", "plan")
FOLDERS = sorted(file.parent for file in paths.REFERENCE.glob("*/trials.json"))
Point = tuple[tuple[str, Any], ...]
# Words about a number or a name, which nothing measures.
WORDS = ("name", "short", "source", "extends")


def differences(stored: Plan, today: Plan) -> list[str]:
    """What data/ says of a campaign and was not run so: parts of the testbed, the networks and the
    design, settings of the points, blocks.

    Of no account are words; networks that no trial uses; rules of the design that nothing reads
    any more; trials of roles that are no longer planned; and order, where a simulation repeats
    itself. The kind of a testbed is compared by its present name.
    """
    was, now = _described(stored, today), _described(today, today)
    found = [name for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)]
    if len(stored.blocks) != len(today.blocks):
        found.append(f"{len(stored.blocks)} blocks, not {len(today.blocks)}")
    settings = dict[str, None]()
    for before, after in zip((stored.preamble, *stored.blocks), (today.preamble, *today.blocks)):
        old, new = _points(before, today), _points(after, today)
        if old != new:
            names = {name for point in old + new for name, _ in point}
            settings |= {
                name: None
                for name in sorted(names)
                if Counter(map(_of(name), old)) != Counter(map(_of(name), new))
            } or {"order of trials": None}
    return [*found, *settings]


def _of(name: str) -> Callable[[Point], Any]:
    return lambda point: dict(point).get(name)


def _points(trials: Iterable[Trial], today: Plan) -> list[Point]:
    """The settings of a block's trials that are still planned, in order where this matters."""
    planned = {trial.role for trial in today.trials()}
    points = [
        tuple(sorted({**trial.point, "role": trial.role, "tool": trial.runner}.items()))
        for trial in trials
        if trial.role in planned
    ]
    return sorted(points, key=repr) if today.repeats_itself else points


def _described(plan: Plan, today: Plan) -> dict[str, Any]:
    """Each number and name of a plan, by its place, without what is of no account."""
    testbed, used = {**plan.testbed}, today.interconnects.keys()
    testbed["kind"] = renamed.TESTBED_KINDS.get(testbed["kind"], testbed["kind"])
    for name in ("network", "networks"):
        tables = testbed.get(name, {})
        testbed[name] = {network: tables[network] for network in tables.keys() & used}
    # Levels are compared as settings of the points.
    design = {name: plan.design.get(name) for name in today.design if name != "factors"}
    whole = {"testbed": testbed, "network": plan.interconnects, "design": design}
    return dict(_flat(json.loads(json.dumps(whole))))


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield place, value
        return
    for name, part in value.items():
        if name not in WORDS:
            yield from _flat(part, f"{place}.{name}".lstrip("."))


def found(folder: Path, of: str) -> str:
    """What a column of the file has to say of a reference: why it has to be run again, empty if it
    does not."""
    campaign = Folder(folder)
    if of == "commit":
        return ", ".join(provenance.faults(campaign.provenance()["sessions"]))
    stored = campaign.plan()
    return ", ".join(
        differences(stored, planning.plan_campaign(stored.name, stored.testbed["name"], "full"))
    )


def named() -> dict[str, dict[str, str]]:
    """The rows of the file by reference."""
    with open(FILE, encoding="utf-8", newline="") as file:
        return {row["reference"]: row for row in csv.DictReader(file)}


def is_as_named(column: str) -> None:
    """The file names just the references that fail, with the reasons that they have."""
    fails = {folder.name: reason for folder in FOLDERS if (reason := found(folder, column))}
    assert {name: row[column] for name, row in named().items() if row[column]} == fails


def test_every_reference_is_of_one_commit_of_the_history():
    """Without changes; what is not so is named, and what is named is not so."""
    if not provenance.has_history():
        pytest.skip("not a git clone with its whole history: commits cannot be looked up")
    is_as_named("commit")


def test_data_describes_what_every_reference_ran():
    """Each campaign, resolved today; what differs is named, and what is named differs."""
    is_as_named("plan")


def test_only_shipped_references_are_named_each_once_and_with_a_reason():
    """A reference that was run again, and one that is gone, must leave the file."""
    with open(FILE, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    names = [row[0] for row in rows[1:]]
    assert tuple(rows[0]) == COLUMNS
    assert names == sorted(set(names)) and set(names) <= {folder.name for folder in FOLDERS}
    assert all(any(reasons) for _, *reasons in rows[1:])


def changed(plan, **points):
    """A plan whose first trial of the second block has other settings."""
    first, second, *rest = plan.blocks
    trial = replace(second[0], point={**second[0].point, **points})
    return replace(plan, blocks=(first, (trial, *second[1:]), *rest))


def test_other_numbers_points_and_orders_differ_and_other_words_do_not():
    """A testbed's number, a network's, the margin, a setting of one trial, the order, a block; not
    sources, names, networks that no trial uses, rules that are gone, other roles."""
    plan = small_plan()
    testbed, gige = plan.testbed, plan.interconnects["gige"]
    same = replace(
        plan,
        title="Another title",
        testbed={**testbed, "networks": {"path": {"mtu": 1}}, "extends": "another"},
        interconnects={**plan.interconnects, "gige": {**gige, "source": "elsewhere"}},
        design={**plan.design, "drift_limit": 0.1},
        blocks=tuple((*block, replace(block[0], role="after")) for block in plan.blocks),
    )
    assert differences(same, plan) == []
    now = [
        (replace(plan, testbed={**testbed, "nodes": 5}), ["testbed.nodes"]),
        (replace(plan, testbed={**testbed, "kind": "simulated"}), ["testbed.kind"]),
        (
            replace(plan, interconnects={**plan.interconnects, "gige": {"rate_bit_s": 1e6}}),
            ["network.gige.rate_bit_s"],
        ),
        (replace(plan, design={**plan.design, "margin": 0.1}), ["design.margin"]),
        (changed(plan, N=1), ["N"]),
        (replace(plan, blocks=plan.blocks[::-1]), ["order of trials"]),
        (replace(plan, blocks=plan.blocks[:2]), ["3 blocks, not 2"]),
    ]
    for today, expected in now:
        assert differences(plan, today) == expected
    simulated = replace(plan, testbed={**testbed, "kind": "simulated"})
    assert differences(simulated, replace(simulated, blocks=plan.blocks[::-1])) == []
    paths_kind = replace(plan, testbed={**testbed, "kind": "paths"})
    assert differences(paths_kind, replace(plan, testbed={**testbed, "kind": "emulated"})) == []


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A git clone as the checkout: its commits in order, and one that is on another branch."""

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        argv = ["git", *who, *arguments]
        return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout

    folder = tmp_path / "clone"
    (folder / "data" / "reference").mkdir(parents=True)
    (folder / "code.py").write_text("1\n")
    (folder / "data" / "reference" / "packed").write_text("1\n")
    monkeypatch.setattr(provenance, "CHECKOUT", folder)
    commits = []
    git("init", "--quiet", "--initial-branch", "main")
    git("add", ".")
    for branch in ("main", "main", "other"):
        git("checkout", "--quiet", "-B", branch)
        git("commit", "--quiet", "--allow-empty", "--message", "One more")
        commits.append(git("rev-parse", "HEAD").strip())
    git("checkout", "--quiet", "main")
    git("branch", "--quiet", "--delete", "--force", "other")
    return folder, commits


def session(commit, is_dirty=False):
    """The provenance of a session on a commit."""
    return {"host": {"git_commit": commit, "git_dirty": is_dirty}}


def test_what_is_wrong_with_a_campaigns_commits(clone):
    """One of the history and clean is fine, also an earlier one; each fault is named."""
    _, (first, second, elsewhere) = clone
    assert provenance.has_history()
    assert provenance.faults([session(second)] * 2) == provenance.faults([session(first)]) == []
    assert provenance.faults([session(first), session(second)]) == ["2 commits"]
    assert provenance.faults([session(first), session(first, True)]) == ["uncommitted code"]
    assert provenance.faults([session(first, None)]) == ["uncommitted code"]
    for strange in (elsewhere, "0" * 40):
        assert provenance.faults([session(strange)]) == ["commit not in the history"]
    for lost in ({}, {"host": {}}, session(None, None)):
        assert provenance.faults([lost]) == ["commit not recorded"]
        assert provenance.faults([session(first), lost]) == ["commit not recorded"]


def test_code_has_changes_until_it_is_committed(clone):
    """A tracked file, a new one of the code; not what was packed, nor a user's description."""
    folder, (_, head, _) = clone
    (folder / "data" / "reference" / "packed").write_text("2\n")
    (folder / "mine.toml").write_text("")
    assert provenance.code() == {"git_commit": head, "git_dirty": False}
    (folder / "runners").mkdir()
    (folder / "runners" / "new.py").write_text("")
    assert provenance.code()["git_dirty"]
    (folder / "runners" / "new.py").unlink()
    (folder / "code.py").write_text("2\n")
    assert provenance.code()["git_dirty"]


def test_without_its_whole_history_a_checkout_cannot_say(clone, tmp_path, monkeypatch):
    """A shallow clone, and a copy that is no clone."""
    folder, _ = clone
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{folder}", shallow])
    for checkout in (shallow, tmp_path / "exported"):
        checkout.mkdir(exist_ok=True)
        monkeypatch.setattr(provenance, "CHECKOUT", checkout)
        assert not provenance.has_history()


def test_only_a_run_of_one_clean_commit_is_shipped(tmp_path, monkeypatch):
    """Refused before it runs where the code has changes, and at packing for its sessions; anybody
    packs any run elsewhere."""
    ran = []
    monkeypatch.setattr(paths, "DATASETS", tmp_path)

    def run_campaign(plan, **_):
        ran.append(plan.name)
        return folder

    monkeypatch.setattr(running, "run_campaign", run_campaign)
    head = provenance.code()["git_commit"]
    folder, shipped = tmp_path / "run", paths.REFERENCE / "none"
    asked = ("run", "hpl_messages", "--fresh", "--pack")
    manifest.unpack(paths.REFERENCE / "hpl_messages-scale_model", folder)
    monkeypatch.setattr(provenance, "code", lambda: session(head, True)["host"])
    done = run(*asked, str(shipped))
    assert (done.returncode, ran) == (1, []) and "changes: uncommitted code.\nCommit" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    monkeypatch.setattr(provenance, "code", lambda: session(head)["host"])
    done = run(*asked, str(shipped))
    assert (done.returncode, len(ran)) == (1, 1) and "uncommitted code.\nCommit" in done.stderr
    assert not shipped.exists()
    measure._run(planning.plan_campaign("hpl_messages"), False, tmp_path / "mine")
    assert (tmp_path / "mine" / manifest.NAME).exists()


def test_another_machine_goes_on_from_what_was_packed(tmp_path, monkeypatch):
    """One session here, packed; the next there, which packs the sessions of both; here it is taken
    over again; two runs of one plan are never mixed."""
    use_echo(monkeypatch)
    plan = small_plan(stopping={"blocks": 3, "blocks_a_session": 1})
    host = provenance.host()
    monkeypatch.setattr(campaign.provenance, "host", lambda: dict(host))
    packed, here, there = (tmp_path / name for name in ("packed", "here", "there"))
    for number, machine in enumerate((here, there, here), start=1):
        host["boot_id"] = f"boot {number}"
        running.go_on_from(packed, plan, machine)
        testbed, folder = LocalTestbed(), running.folder_of(plan, machine)
        campaign.run(plan, testbed, folder)
        assert len(testbed.executed) == len(plan.blocks[0]) + (number == 1)
        manifest.pack(folder.path, packed)
        running.go_on_from(packed, plan, machine)  # changes nothing
        assert manifest.read(packed) and manifest.differences(packed) == []
        assert len(Folder(packed).provenance()["sessions"]) == number
        assert max(Folder(packed).sessions().values()) == number
    running.go_on_from(packed, replace(plan, digest="another"), there)
    campaign.run(plan, LocalTestbed(), running.folder_of(plan, there))
    with pytest.raises(FalloffError, match="two runs of small"):
        running.go_on_from(packed, plan, there)
    (packed / "journal.jsonl").write_text("")
    with pytest.raises(FalloffError, match="not as it was packed"):
        running.go_on_from(packed, plan, there)


def main() -> None:
    """Write the file anew."""
    if not provenance.has_history():
        raise SystemExit("commits cannot be looked up here: run this in a whole git clone")
    rows = [[folder.name, *(found(folder, column) for column in COLUMNS[1:])] for folder in FOLDERS]
    with open(FILE, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerows([COLUMNS, *(row for row in rows if any(row[1:]))])


if __name__ == "__main__":
    main()
