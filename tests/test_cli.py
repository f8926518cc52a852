"""The command line as a user meets it: readings as JSON, refusals in a line or two, never a
traceback.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pexpect
import pytest
from command_line import ROOT, run

from analysis import commands, paths, planning, running
from analysis.commands import measure
from analysis.commands.grammar import repeated
from analysis.dataset import store
from analysis.evidence import artifact
from analysis.laws import models
from analysis.quoting import as_written
from analysis.statements import exhibit, statement

HPL = ROOT / "tests" / "transcripts" / "hpl"


def test_the_installed_command_works_from_any_folder(tmp_path):
    """Somebody's HPL.out gives its rows with settings, readings and units; a mistake is its only
    line.
    """

    def done(tool, file):
        command = [str(Path(sys.executable).with_name("falloff")), "import", tool, str(HPL / file)]
        return subprocess.run([*command, "--print"], capture_output=True, text=True, cwd=tmp_path)

    several = done("hpl", "2.0-several-rows.txt")
    results = json.loads(several.stdout)["results"]
    assert several.returncode == 0 and len(results) > 1
    for result in results:
        rate = {reading["name"]: reading for reading in result["readings"]}["hpl_rate"]
        assert rate["value"] > 0 and rate["unit"] == "Gflop/s" and result["settings"]["N"] > 0
    (failed,) = json.loads(done("hpl", "2.0-failed.txt").stdout)["results"]
    assert failed["readings"] == [] and "FAILED" in failed["refused"]
    mistake = done("lapack", "2.0-failed.txt")
    assert (mistake.returncode, mistake.stdout) == (1, "")
    assert re.fullmatch("falloff: there is no tool 'lapack'.*\n", mistake.stderr)


def test_fit_and_compare_find_a_power_law(tmp_path):
    """The truth lies in the printed intervals; that model is first, and one that blocks cannot
    carry says why.
    """
    table = tmp_path / "mine.csv"
    random = np.random.default_rng(1)
    rows = [
        f"{block},{n},{3 * n**0.6 * random.normal(1, 0.01)}"
        for block in range(6)
        for n in (1, 2, 4, 8, 16)
    ]
    table.write_text("block,nodes,rate\n" + "\n".join(rows) + "\n")
    columns = ("--x", "nodes", "--y", "rate")
    fit = json.loads(run("fit", "power_law", str(table), *columns, "--json").stdout)
    for name, truth in zip(fit["estimates"], (3, 0.6), strict=True):
        low, high = fit["intervals_95"][name]
        assert low < truth < high
    compared = json.loads(run("fit", str(table), *columns, "--block", "block", "--json").stdout)
    found = {comparison["model"]: comparison for comparison in compared}
    best = compared[0]
    low, high = best["intervals_95"]["b"]
    assert best["model"] == "power_law" and low < 0.6 < high and "6 blocks" in best["interval_kind"]
    assert found["segmented"]["refused"] and found["segmented"]["pooled"] is None


def test_a_law_of_several_quantities_is_fitted(tmp_path):
    """A network's inverse bandwidth [s/B] from HPL's efficiencies, its settings in columns of their
    own.
    """
    table = tmp_path / "mine.csv"
    settings = np.array([[1200, 24, 1, 2, 4e6], [1680, 24, 2, 2, 4e6], [2400, 24, 2, 4, 4e6]])
    efficiency = models.find("hpl_messages").function(settings.T, 1e-4, 2e-6)
    np.savetxt(
        table,
        np.column_stack([settings, efficiency]),
        delimiter=",",
        comments="",
        header="N,NB,P,Q,rate,share",
    )
    fit = json.loads(
        run(
            "fit", "hpl_messages", str(table), "--x", "N,NB,P,Q,rate", "--y", "share", "--json"
        ).stdout
    )
    assert fit["estimates"]["beta"] == pytest.approx(2e-6, rel=1e-3)


def test_plan_says_minutes_and_probabilities(monkeypatch, tmp_path):
    """The reference has as many blocks as are planned: so long a plan takes, and by one's own run
    as long as that took.
    """
    monkeypatch.setattr(paths, "RAW", tmp_path)

    def planned(campaign, *arguments):
        said = run("run", campaign, "--plan", *arguments).stdout
        rows = re.findall(r"^ +(\d+) +([\d?]+)((?: +[01]\.\d{3})+)$", said, re.M)
        return said, {look: (time, [*map(float, odds.split())]) for look, time, odds in rows}

    reference = paths.REFERENCE / "hpl_noise-scale_model"
    notes = [*map(json.loads, (reference / "journal.jsonl").read_text().splitlines())]
    begins = [place for place, note in enumerate(notes) if note["event"] == "session"]
    sessions = zip(begins, [*begins[1:], len(notes)])  # between them nothing ran
    took = sum(notes[end - 1]["at"] - notes[begin]["at"] for begin, end in sessions) / 60
    said, rows = planned("hpl_noise")
    (look,) = rows
    assert float(rows[look][0]) == pytest.approx(took, rel=0.2) and str(reference) in said
    own = tmp_path / "hpl_noise-scale_model-12345678"
    shutil.copytree(reference, own)
    twice = [note | {"seconds": 2 * note.get("seconds", 0)} for note in notes]
    (own / "journal.jsonl").write_text("\n".join(map(json.dumps, twice)))
    said, rows = planned("hpl_noise")
    assert float(rows[look][0]) == pytest.approx(2 * took, rel=0.2) and str(own) in said
    # Where nothing was run: later looks decide more often, a larger scatter less.
    said, rows = planned("hpl_scaling", "--testbed", "example_ssh")
    assert list(rows) == ["9", "12", "18"]
    odds = np.array([probabilities for _, probabilities in rows.values()])
    assert {time for time, _ in rows.values()} == {"?"} and "--repeats 1" in said
    assert (np.diff(odds, axis=0) >= 0).all() and (np.diff(odds, axis=1) < 0).all()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("import", "hpl", "README.md", "--print"), "not an output of HPL"),
        (
            ("import", "iperf33", "README.md", "--print"),
            "there is no tool 'iperf33' (did you mean 'iperf3'?)",
        ),
        (("status", "nosuch"), "there is no campaign 'nosuch'; there are: "),
        (("run",), "falloff run --list"),
        (("run", "hpl_scalling"), "(did you mean 'hpl_scaling'?)"),
        (("report", "--claims", "--data", "x"), "give one of them"),
        (("run", "hpl_size", "--plan"), "judges no fall over nodes: there is nothing to plan"),
        (
            ("run", "hpl_paper_sensitivity", "--testbed", "emulated"),
            "testbed emulated is no simulated one",
        ),
        (
            ("run", "mtu", "--testbed", "smith"),
            "joined by paths, and those of testbed smith are not",
        ),
        (("run", "hpl_scaling", "--preset", "quck"), "did you mean quick?"),
        (("doctor", "--testbed", "emulated"), "testbed emulated is no cluster"),
        (
            ("fit", "constant", "data/published/fortinet_table1.csv", "--x", "P", "--y", "q"),
            "no column 'q'",
        ),
        (("fit", "README.md", "--x", "a", "--y", "b"), "say what was measured together by --block"),
        (
            ("fit", "data/published/fortinet_table1.csv", "--x", "P", "--y", "N", "--block", "P"),
            "name the one that counts",
        ),
        (("report", "--design", "data"), "cannot read data"),
        (
            ("evidence", "trace", "sahre"),
            "no figure 'sahre' (did you mean 'share'?); there are: agreement, ",
        ),
        (
            ("evidence", "trace", "table1", "--transcript", "x/y"),
            "they are: hpl_paper_emulated-fortinet_model, hpl_paper_simulated-smith",
        ),
        (("evidence", "archive", "README.md"), "README.md is there already"),
        (("profile",), "say after `--` what to run"),
        (("profile", "--replay", "stencil", "--on", "emulated"), "is not simulated"),
        (("profile", "--replay", "stencil", "--nodes", "2"), "the smallest recording has 4"),
    ],
)
def test_mistakes_are_answered_in_a_line_or_two(arguments, answer):
    """Exit code 1, the reason on stderr, a line for each of several faults, nothing on stdout."""
    done = run(*arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert answer in done.stderr and len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("rn",), "there is no command 'rn' (did you mean 'run'?)"),
        (("evidence", "verfy"), "there is no command 'verfy' (did you mean 'verify'?)"),
        (("explore", "--port", "99999"), "99999"),
        (("run", "hpl_size", "--repeats", "few"), "few"),
        (("reproduce", "data", "--minutes", "nan"), "nan"),
        (("report", "--preset", "quik"), "'quick'"),
        (("fit",), "FILE"),
        (("fit", "amdahl", "a.csv", "b.csv"), "one"),
        (("twin", "data"), "--name"),
        (("twin", "data", "--name", "own", "--faster", "10,25"), "say --network 10gige 25gige"),
        (("profile", "--replay", "stencil", "--nodes", "32", "many"), "many"),
    ],
)
def test_what_is_not_understood_has_its_own_exit_code(arguments, answer):
    """2, or 3 where 2 is an answer, and the command whose help shows more."""
    done = run(*arguments)
    assert done.returncode == (3 if arguments[0] == "reproduce" else 2) and done.stdout == ""
    assert answer in done.stderr and len(done.stderr.splitlines()) == 2
    assert done.stderr.endswith("--help` shows what there is\n")


def grammar(group=commands.falloff, words=()):
    """Every command by the words that call it."""
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from grammar(command, (*words, name))


@pytest.mark.parametrize(
    ("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in grammar()]
)
def test_every_command_explains_itself(words, command, monkeypatch):
    """Its line among the others; help for each argument and option, with the default; a misspelt
    option is answered with the right one, and nothing runs."""
    monkeypatch.setenv("COLUMNS", "80")
    above = run(*words[:-1], "--help").stdout
    assert re.search(rf"^  {words[-1]} +{re.escape(command.get_short_help_str(100))}$", above, re.M)
    done = run(*words, "--help")
    told = " ".join(done.stdout.split())
    assert done.returncode == 0 and " ".join(command.help.split()) in told
    options = [each for each in command.params if isinstance(each, click.Option)]
    for parameter in command.params:
        assert " ".join(parameter.help.split()) in told, parameter.name
    for each in options:
        is_default_told = each.is_flag or not each.to_info_dict()["default"] or "default: " in told
        assert each.opts[0] in told and each.opts[0].startswith("--") and is_default_told
    longest = max([*(each.opts[0] for each in options), "--help"], key=len)
    done = run(*words, f"{longest[:-1]}")
    assert done.returncode == (getattr(command, "mistake", 0) or 2) and done.stdout == ""
    assert f"did you mean {longest!r}?" in done.stderr and len(done.stderr.splitlines()) == 2


def test_several_numbers_of_nodes_follow_one_option():
    """And what follows `--` is the program's own."""
    program = ["--", "mpirun", "--nodes", "1", "2"]
    typed = ["--replay", "mine", "--nodes", "32", "64", "128", "--testbed", "smith", *program]
    read = ["--nodes", "32", "--nodes", "64", "--nodes", "128", "--testbed", "smith", *program]
    assert repeated(typed) == ["--replay", "mine", *read]


def test_version_and_help():
    """The commit where this is a clone; the commands under headings and the exit codes, also where
    nothing was asked.
    """
    version = r"falloff \d+\.\d+\.\d+( \(commit [0-9a-f]{10}(, changed since)?\))?\n"
    done = run("--version")
    assert done.returncode == 0 and re.fullmatch(version, done.stdout)
    asked, nothing = run("-h"), run()
    assert (asked.returncode, asked.stderr) == (0, "")
    assert (nothing.returncode, nothing.stdout) == (2, "") and nothing.stderr == asked.stdout
    headings = [heading for heading in commands.HEADINGS if f"\n{heading}:\n" in asked.stdout]
    assert headings == [*commands.HEADINGS] and "141 broken pipe" in asked.stdout


COMPLETED = {
    "run hpl_scali": "run hpl_scaling",
    "run hpl_size --testbed smith_g": "run hpl_size --testbed smith_gige",
    "run --pres": "run --preset",
    "import hpc": "import hpcc",
    "import hpl --map pla": "import hpl --map plan.csv",
    "evidence v": "evidence verify",
    "evidence trace my_f": "evidence trace my_figure",
    "report --claims grid": "report --claims grid5000",
    "profile --replay sten": "profile --replay stencil",
    "twin link_bonding_t": "twin link_bonding_tcp-rails",
    "fit univ": "fit universal_scalability",
}


def test_tab_completes(tmp_path):
    """Bash itself, after the line that docs/commands.md gives: each line is completed, and then
    printed instead of run.
    """
    (tmp_path / "plan.csv").touch()
    (tmp_path / "build" / "report" / "figures").mkdir(parents=True)
    (tmp_path / "build" / "report" / "figures" / "my_figure.svg").touch()
    folder = Path(sys.executable).parent
    line = re.search(
        r"eval .*bash_source .*falloff\)\"", (ROOT / "docs" / "commands.md").read_text()
    )[0]
    around = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "FALLOFF_HOME": str(tmp_path)}
    around |= {"TERM": "dumb", "PS1": "$ "}
    shell = pexpect.spawn(
        "bash",
        ["--norc", "--noprofile", "-i"],
        env=around,
        cwd=tmp_path,
        encoding="utf-8",
        dimensions=(24, 250),
        timeout=60,
    )
    shell.sendline(f"{line.replace('/path/to/falloff/.venv/bin', str(folder))}; echo ready")
    shell.expect("\nready\r")
    found = {}
    for typed in COMPLETED:
        shell.send(f"falloff {typed}\t\x01echo \n")  # Ctrl+A: to the beginning of the line
        shell.expect(r"\nfalloff ([^\r\n]*)\r\n")
        found[typed] = shell.match[1].strip()
    shell.close()
    assert found == COMPLETED


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "statement"),
    [
        (
            "hpl_scaling-fortinet_model",
            r"GigE falls off against 10GE from 2 to 36 nodes: .* falls by [\d.]+ % .*\.",
        ),
        ("hpl_paper_emulated-fortinet_model", r"GigE falls off against 10GE .*"),
        (
            "twin_load-scale_model",
            r"No statement: no notebook judges campaign twin_load by itself, .*",
        ),
    ],
)
def test_a_run_ends_with_its_statements(name, statement, monkeypatch, tmp_path):
    """Those that the campaign was planned for, or why there is none; the data are kept in any
    case.
    """
    monkeypatch.setattr(paths, "DATASETS", tmp_path)
    monkeypatch.setattr(running, "run_campaign", lambda plan, **_: paths.REFERENCE / name)
    done = run("run", name.partition("-")[0])
    assert done.returncode == 0 and (tmp_path / f"{name}.nc").exists()
    last = done.stdout.partition("Dataset: ")[2].splitlines()[1]
    assert re.fullmatch(statement, last), done.stdout


@pytest.mark.parametrize(
    ("name", "is_differing"),
    [("incast_setups-congestion_model", True), ("hpl_paper_emulated-fortinet_model", False)],
)
def test_a_run_says_in_what_its_sessions_differ(name, is_differing, monkeypatch, tmp_path):
    """Once, and once in the table of what the campaign varies, which stands in the report; a
    simulation depends on none.
    """
    monkeypatch.setattr(paths, "DATASETS", tmp_path)
    monkeypatch.setattr(running, "run_campaign", lambda plan, **_: paths.REFERENCE / name)
    monkeypatch.setattr(measure, "_statements", lambda *_: [])
    done = run("run", name.partition("-")[0])
    dataset = store.read(paths.REFERENCE / name)
    wanted = "commit f215b04 with changes, then 6ebd5d7 with changes"
    for text in (done.stdout, as_written(exhibit.planned(dataset).markdown)):
        assert text.count(wanted) == is_differing and ("sessions differ" in text) == is_differing


def test_a_run_without_a_reading_says_how_to_try_again(monkeypatch, tmp_path):
    """Its trials are finished, so that the same command alone would not run them again."""
    monkeypatch.setattr(paths, "DATASETS", tmp_path)
    folder = paths.REFERENCE / "hpl_paper_emulated-fortinet_model"
    monkeypatch.setattr(running, "run_campaign", lambda plan, **_: folder)
    monkeypatch.setattr(statement, "gave_nothing", lambda _: True)
    done = run("run", "hpl_paper_emulated")
    assert done.returncode == 1 and "--fresh" in done.stdout.splitlines()[-1]


def test_doctor_tells_what_is_here():
    """Every tool of the main campaign is named, with its path or its remedy."""
    done = run("doctor")
    assert all(tool in done.stdout for tool in ("xhpl", "iperf3", "ping"))
    assert (done.returncode == 0) == ("MISSING" not in done.stdout)
    for name in measure.TRIED:
        assert running.obstacles(planning.plan_campaign(name)) or re.search(
            f"a trial of {name} on testbed \\w+ gives a result", done.stdout
        ), re.findall(".* a trial of .*", done.stdout)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "program"), [("hpl_paper_simulated", "xhpl_simulated"), ("hpl_scaling", "xhpl")]
)
def test_a_trial_that_cannot_end_well_says_why(name, program):
    """A tool that is there and does not work is found out by running it; that it works here, the
    test above shows.
    """
    plan = planning.plan_campaign(name)
    if running.obstacles(plan):
        pytest.skip("it cannot run here")
    broken = {**plan.testbed.get("tools", {}), program: "/bin/false"}
    assert running.tried(replace(plan, testbed={**plan.testbed, "tools": broken}))


@pytest.mark.more
def test_all_is_written_below_falloff_home(tmp_path):
    """Whatever letters its path has, without a locale: what is kept, drawn and verified lies there
    alone.
    """
    home = tmp_path / f'mé "it\'s" 50% {200 * "x"}'
    command = [str(Path(sys.executable).with_name("falloff"))]
    around = {**os.environ, "FALLOFF_HOME": str(home), "LC_ALL": "C"}

    def done(*words):
        ended = subprocess.run([*command, *words], capture_output=True, env=around, cwd=tmp_path)
        assert ended.returncode in (0, 1), ended.stderr.decode()
        return ended.stdout.decode(errors="replace")

    before = {path for folder in ("data", "build") for path in (ROOT / folder).glob("*/*")}
    done("import", "hpl", str(HPL / "2.0-several-rows.txt"))
    (raw,) = (home / "data" / "raw").iterdir()
    assert list((home / "data" / "datasets").glob("*.nc"))
    copy = shutil.copytree(paths.REFERENCE / "hpl_paper_emulated-fortinet_model", home / "copy")
    done("compare", str(copy), str(paths.REFERENCE / "hpl_scaling-fortinet_model"))
    assert (home / "build" / "compare.svg").exists()
    assert raw.name in done("evidence", "verify", str(raw))
    described = home / "data" / "campaigns" / "mine.toml"
    described.parent.mkdir()
    shutil.copy(paths.CAMPAIGNS / "link_bonding_tcp.toml", described)
    described.write_text(described.read_text().replace("title = ", 'title = "Mine: " # '))
    assert re.search("^mine .* Mine: $", done("run", "--list"), re.M)
    after = {path for folder in ("data", "build") for path in (ROOT / folder).glob("*/*")}
    # Other tests may write there meanwhile.
    own = {path.name for folder in ("data", "build") for path in (home / folder).rglob("*")}
    assert not own & {path.name for path in after - before}


def test_an_installation_that_may_not_be_written_names_the_remedy(monkeypatch, tmp_path):
    """One line, where the folder is Falloff's own; elsewhere only what is wrong."""
    monkeypatch.setattr(paths, "HOME", tmp_path)
    for where, is_named in ((tmp_path / "data", True), (Path("/other"), False)):

        def refused(*_, **__):
            raise PermissionError(13, "Permission denied", str(where))

        monkeypatch.setattr(commands.measure.status, "callback", refused)
        done = run("status")
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert ("FALLOFF_HOME" in done.stderr) == is_named


def test_an_archive_makes_the_report_that_is_not_there(monkeypatch, tmp_path):
    """That of the stored data, where the project's own report goes."""
    asked = []
    monkeypatch.setattr(paths, "REPORT", tmp_path / "report")
    monkeypatch.setattr(commands.report, "make_report", lambda *words: asked.append(words))
    monkeypatch.setattr(artifact, "write", lambda file, _: (file.write_text(""), ([], []))[1])
    done = run("evidence", "archive", str(tmp_path / "all.zip"))
    assert done.returncode == 0 and asked == [("stored", None, tmp_path / "report")]
