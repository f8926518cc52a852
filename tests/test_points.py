"""A point is everything that was set: no mean, interval or verdict holds runs with two values of
any setting.
"""

import re

import numpy as np
import pytest
import recorded

from analysis import paths
from analysis.dataset import points
from analysis.dataset.schema import schema, settings
from analysis.dataset.store import laid_out
from analysis.imports import dataset_sections, file_facts, importing
from analysis.quoting import as_written
from analysis.report.import_report import save
from analysis.statements import notebooks
from analysis.subjects import collectives, hpl_points, messages
from analysis.watch import comparison, history_changes, history_report, history_sessions, samples
from runners.records.record import FalloffError
from runners.tools import all_tools, tool_named

COLUMNS = ["series", "what", "unit", "count", "size"]
LOG_HEAD = "job_completion_time|version|info|result|copy_value|copy_unit|triad_value|triad_unit\n"
TIMES = ("round_trip_time", "half_round_trip", "ping_pong_latency_mean")
READ = [tool for tool in all_tools() if {*tool.readings} & {*samples.HIGHER, *samples.LOWER}]
CASES = [
    (tool, name)
    for tool in READ
    for name in ("interconnect", "nodes", *tool.factors)
    if name != "rpeak"
]


def trials(tool, setting, halves, runs=4, value=1.0):
    """A dataset of `runs` imported runs of a tool with each of two values of a setting; the second
    half is twice as fast.
    """
    rows = []
    for run in range(2 * runs):
        speed = value * (1 + run // runs) * (1 + 0.001 * (run % runs))
        own = {"interconnect": "gige"} | {setting: halves[run // runs]}
        for name, quantity in tool.readings.items():
            if quantity.units and name in (
                *samples.HIGHER,
                *samples.LOWER,
                *TIMES,
            ):
                lower = name in (*samples.LOWER, *TIMES)
                own[name] = np.full(
                    [2] * (len(quantity.dims) - 1), 1 / speed if lower else speed
                ).tolist()
        own |= {"message_size": [1, 2**21]} if "message_size" in tool.readings else {}
        identity = {
            "trial_id": f"t{run}",
            "role": "point",
            "runner": tool.name,
            "block": 1,
            "order": run,
        }
        rows.append(
            {
                **identity,
                "evidence": "measured",
                "testbed": "imported",
                "file": f"f{run}",
                "status": "ok",
                **own,
            }
        )
    found = laid_out(rows, 2)
    names = {name: importing.described(name) for name in {row["interconnect"] for row in rows}}
    return found.assign_attrs(
        campaign=tool.name,
        campaign_hash="0" * 64,
        ended="",
        provenance="{}",
        settings="{}",
        design='{"factors": {}, "repeats": "unordered"}',
        interconnects=importing.json.dumps(names),
        testbed_settings='{"name": "imported", "kind": "imported"}',
    )


def shown(dataset, notebook):
    """The statements of a notebook on an import."""
    campaign = dataset.attrs["campaign"]
    file = paths.NOTEBOOKS / f"{notebook}.ipynb"
    return notebooks.run(file, {campaign: dataset}, campaign=campaign).statements


@pytest.mark.parametrize(("tool", "setting"), CASES, ids=lambda one: getattr(one, "name", one))
def test_no_mean_mixes_two_values_of_a_setting(tool, setting):
    """Of every tool and each setting that it declares: half of the runs with another one, twice as
    fast.
    """
    described = schema()["coordinates"][setting]
    halves = (
        described.get("values", ["gige", "10gige"])[:2] if described["type"] == "text" else [2, 4]
    )
    dataset = trials(tool, setting, halves)
    sample = samples.of_dataset(dataset, "here")
    assert all(np.ptp(logs) < 0.01 for logs in sample.log_speeds().values())
    if dataset_sections.has(dataset, dataset_sections.COLLECTIVES):
        found = points.means(collectives.values(dataset), COLUMNS)
        assert found.groupby(["what", "size"], dropna=False).size().min() == 2
        assert (found.high / found.low < 1.01).all()
    if dataset_sections.has(dataset, dataset_sections.MESSAGES):
        found = messages.tables(dataset)
        assert found.sizes["series"] == 2
        ends = [
            (row.mean, row.low, row.high) for row in messages.best_bandwidths(found).itertuples()
        ]
        ends += [line.latency for line in messages.lines(found).values()]
        assert len(shown(dataset, dataset_sections.MESSAGES)) >= 2
        assert ends and all(high / low < 1.01 for _, low, high in ends)
    if dataset_sections.has(dataset, dataset_sections.STREAMS):
        values = points.by_series(dataset, dataset_sections.NOTEBOOKS[dataset_sections.STREAMS])
        found = points.means(values, ["quantity", "unit", "series", "network"])
        assert len(found) == 2 * found.quantity.nunique()
        assert (found.high / found.low < 1.01).all()


def test_every_setting_is_of_a_point_and_what_is_none_is_not():
    """Points follow the schema: what a tool declares is in them, what identifies a trial is not."""
    declared = {name for tool in all_tools() for name in tool.factors} - {"rpeak"}
    declared = {name for name in declared if settings()[name]["type"] != "text"}
    dataset = trials(tool_named("netperf"), "test", ["a", "b"]).reset_coords()
    known = points.of_trials(dataset.assign({name: ("trial", np.ones(8)) for name in declared}))
    assert declared <= {*known[0]}
    assert not {"file", "version", "block", "trial_id", "rpeak"} & {*known[0]}


def write(folder, name, text, change=()):
    """Write an output, with words replaced, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return folder / name


def imported(tool, folder, **common):
    """What is said of an import of a folder."""
    return importing.read(tool, [folder], common)


def test_two_tests_in_one_file_are_no_repeats(tmp_path):
    """A recorded file of OSU has two latencies of one table each: neither has an interval over
    runs.
    """
    found = importing.dataset_of("osu", [recorded.FOLDER / "osu" / "5.6.3-between-processes.txt"])
    lines = messages.lines(messages.tables(found))
    assert [line.runs for line in lines.values()] == [1, 1]
    assert any("multi latency" in name for name in lines)


def test_a_copy_counts_once_and_is_named(tmp_path):
    """The same HPL.out as four runs is one run, in an import as in a comparison; a run with another
    time is another.
    """
    text = recorded.text("hpl/2.0-several-rows")
    for run in range(1, 5):
        write(tmp_path / "gige" / "n02" / f"run{run}", "HPL.out", text)
    found = imported("hpl", tmp_path)
    assert len(found.sources) == 1 and sum("a copy of" in line for line in found.left_out) == 3
    write(tmp_path / "gige" / "n02" / "run5", "HPL.out", text + "\n")
    assert len(imported("hpl", tmp_path).sources) == 2


def test_a_copied_source_adds_no_session(tmp_path):
    """A CSV file given twice, or under another name, and a log twice: each session counts once, and
    the copy is named.
    """
    rows = "".join(f"2026-01-{day:02d}T03:00:00,{100 + day % 3}\n" for day in range(1, 21))
    first, second = (write(tmp_path, name, "time,rate\n" + rows) for name in ("a.csv", "b.csv"))
    alone, twice = history_sessions.read([first]), history_sessions.read([first, second, first])
    assert len(alone.sessions) == len(twice.sessions) and len(alone.values) == len(twice.values)
    assert len(twice.copies) == 2 and "b.csv" in history_report.text(history_changes.judge(twice))
    with pytest.raises(FalloffError, match="copy of"):
        comparison.compare(
            *(samples.read(each, "time", "rate", "block", "higher") for each in _blocks(tmp_path))
        )


def _blocks(folder):
    rows = "".join(f"{n},{n},{block}\n" for n in (1, 2) for block in (1, 2, 3))
    return [write(folder, name, "time,rate,block\n" + rows) for name in ("c.csv", "d.csv")]


def nightly(nights, value, unit=lambda night: "MB/s", where=lambda night: "@c:p+e"):
    """A log of ReFrame with copy and triad of two sizes, each night."""
    lines = []
    for night in range(nights):
        for size in (1, 2):
            copy, triad = (f"{value(night, size, name):.5g}" for name in ("copy", "triad"))
            cells = (
                f"2024-03-{night + 1:02d}T02:0{size}:00|4.6|net %size={size} /1a "
                f"{where(night)}|pass"
            )
            lines.append(f"{cells}|{copy}|{unit(night)}|{triad}|{unit(night)}\n")
    return LOG_HEAD + "".join(lines)


def test_each_figure_and_parameter_of_a_log_is_a_course(tmp_path):
    """Four courses in 30 sessions; only the one that loses 10 % is named, in the log's unit."""

    def value(night, size, name):
        loss = 0.9 if night >= 15 and (size, name) == (2, "triad") else 1
        return (
            loss
            * size
            * (24000 if name == "copy" else 300)
            * (1 + 0.002 * np.sin(7 * night + size))
        )

    found = history_changes.judge(
        history_sessions.read([write(tmp_path, "a.log", nightly(30, value))])
    )
    text = history_report.text(found)
    assert len(found.history.sessions) == 30 and found.history.values.what.nunique() == 4
    (only,) = found.changes
    assert [as_written(quantity.what) for quantity in only.quantities] == ["net size=2 triad"]
    assert only.quantities[0].size == pytest.approx(-0.1, abs=0.01) and "MB/s" in text


@pytest.mark.parametrize(("other", "factor"), [("GB/s", 1e-3), ("Gbit/s", 8e-3), ("kB/s", 1e3)])
def test_units_of_one_log_are_converted(other, factor, tmp_path):
    """A log that changes its unit is one course without a change, also in two files; the first unit
    is shown.
    """

    def value(night, size, name):
        return (factor if night >= 15 else 1) * size * (1000 if name == "copy" else 300)

    text = nightly(30, value, unit=lambda night: other if night >= 15 else "MB/s")
    found = history_sessions.read([write(tmp_path, "a.log", text)])
    assert found.values.what.nunique() == 4 and {unit for unit, _ in found.units.values()} == {
        "MB/s"
    }
    spread = found.values.groupby("what").log.agg(np.ptp)
    assert spread.max() < 0.001
    lines = text.splitlines(keepends=True)
    halves = [
        write(tmp_path, f"{n}.log", LOG_HEAD + "".join(lines[a:b]))
        for n, (a, b) in enumerate([(1, 31), (31, 61)])
    ]
    assert history_sessions.read(halves).values.groupby("what").log.agg(np.ptp).max() < 0.001


def test_other_units_and_platforms_are_other_courses(tmp_path):
    """What cannot be converted, and another partition or environment, is another course."""
    units = nightly(4, lambda *_: 5.0, unit=lambda night: "ns/day" if night % 2 else "1/s")
    assert history_sessions.read([write(tmp_path, "a.log", units)]).values.what.nunique() == 8
    places = nightly(
        4, lambda *_: 5.0, where=lambda night: "@c:p+intel" if night % 2 else "@c:p+gnu"
    )
    assert history_sessions.read([write(tmp_path, "b.log", places)]).values.what.nunique() == 8


@pytest.mark.parametrize(
    ("unit", "seconds"), [("min", 60), ("h", 3600), ("us", 1e-6), ("s/step", 1)]
)
def test_times_of_a_log_are_times(unit, seconds):
    """Minutes, hours and times for a step are times, for which less is better."""
    text = nightly(1, lambda *_: 2.0, unit=lambda _: unit)
    assert recorded.values("reframe", text, "reported_time") == [pytest.approx(2 * seconds)] * 4


def test_runs_of_unknown_networks_have_no_interval(tmp_path):
    """As of HPL: where no network is known, runs may be of several."""
    for run in (1, 2):
        write(tmp_path, f"run{run}.txt", recorded.text("iperf3/3.12-text") + "\n" * run)
    (level,) = shown(importing.dataset_of("iperf3", [tmp_path]), dataset_sections.STREAMS)
    assert level.n == 2 and level.estimate and level.interval is None
    for common in ({}, {"interconnect": "gige"}):  # the remedy stands beside it
        said = save(importing.read("iperf3", [tmp_path], common), tmp_path.parent / "out")
        assert ("--set interconnect=NAME" in said) is not bool(common)


def test_operations_in_two_units_are_apart(tmp_path):
    """A figure of merit that a log has in MB/s and in GB/s has a mean in each."""
    text = nightly(4, lambda *_: 1000.0, unit=lambda night: "MB/s" if night % 2 else "GB/s")
    dataset = importing.dataset_of("reframe", [write(tmp_path, "a.log", text)])
    assert points.means(collectives.values(dataset), COLUMNS).runs.tolist() == [2] * 8


def test_nodes_of_collective_operations_are_read_from_paths(tmp_path):
    """OSU does not print its processes: results of 2 and of 8 nodes are two points."""
    for nodes in (2, 8):
        write(
            tmp_path / "ib" / f"n{nodes:02d}",
            "a.out",
            recorded.text("osu/5.6.3-alltoall") + f"{nodes}\n",
        )
    sample = samples.of_dataset(importing.dataset_of("osu", [tmp_path]), "here")
    assert {dict(point)["nodes"] for point in sample.trials.point} == {2, 8}


def test_settings_that_an_output_states_are_of_its_point(tmp_path):
    """sockperf's test and message size above an output, several groups of IMB at once, and
    processes that a path, a file's name or a header tells."""
    output = recorded.text("sockperf/3.7-ping-pong")
    commands = (
        "pp --tcp -m 64",
        "ping-pong -i a --msg-size=1000",
        "under-load -m 64 --mps=max",
        "ul",
    )
    together = "".join(f"$ ./sockperf {line}\n{output}" for line in commands)
    wanted = [("ping-pong", 64), ("ping-pong", 1000), ("under-load", 64), ("under-load", None)]
    for text, of_file in ((together, wanted), (output + together, [(None, None), *wanted])):
        read = recorded.listed("sockperf", text)
        assert [(one.get("test"), one.get("request_bytes")) for one in read] == of_file
    single = recorded.text("imb/4.0-pingpong")
    line = next(line for line in single.splitlines() if "#processes = 2" in line)
    title = "Benchmarking PingPong"
    groups = single.replace(line, "# ( 2 groups of 2 processes each running simultaneous )")
    for text in (groups, groups.replace(title, "Benchmarking Multi-PingPong")):
        assert recorded.values("imb", single, "message_time") == recorded.values(
            "imb", text, "message_time"
        )
        assert "2 groups of 2" in recorded.values("imb", text, "test")[0]
    columns = groups.replace("       #bytes", "  Group   #bytes")
    assert recorded.kinds("imb", columns) == ["unsupported"]


@pytest.mark.parametrize(
    "name", ["np{}/a.out", "a-np_{}.out", "{}ranks.out", "a -np {}.out", "x{}.out"]
)
def test_processes_that_a_path_or_header_tells_are_of_the_point(name, tmp_path):
    """Of collective operations whose output does not print them; never of one that does."""
    text = recorded.text("osu/5.6.3-alltoall")
    for count in (4, 16):
        header = f"$ mpirun -x A=1 -np {count} ./osu_alltoall\n" if name[0] == "x" else ""
        file = tmp_path / "gige" / name.format(count)
        write(file.parent, file.name, f"{header}{text}{count}\n")
    sample = samples.of_dataset(importing.dataset_of("osu", [tmp_path]), "here")
    known = [dict(point) for point in sample.trials.point]
    assert {point["processes"] for point in known} == {4, 16}
    assert {point["interconnect"] for point in known} == {"gige"}
    printed = [{"processes": 2}]
    assert (
        file_facts.facts([file_facts.OutputFile("np16/a", "", printed)], True)[0].processes is None
    )
    assert (
        file_facts.facts([file_facts.OutputFile("4_ranks_per_node/a", "")], True)[0].processes
        is None
    )


@pytest.mark.parametrize(
    ("words", "name"), [("NB", "NB (128 and 192)"), ("P", "processes a node (4 and 8)")]
)
def test_what_else_differs_is_beside_the_verdict(words, name, tmp_path):
    """NB or the processes of a node that differ between the ends of a fall, or between networks,
    stand in the sentence.
    """
    from foreign_hpl import output

    for network, nodes, run in (
        (w, n, r) for w in ("gige", "10gige") for n in (1, 4) for r in (1, 2, 3)
    ):
        is_other = nodes == 4 if words == "NB" else network == "10gige"
        grid = {"P": 8 if words == "P" and is_other else 4, "Q": nodes}
        text = output(
            100 * nodes * (0.9 + 0.001 * run),
            N=10000 * int(nodes**0.5),
            NB=192 if words == "NB" and is_other else 128,
            **grid,
        )
        write(tmp_path / network / f"n{nodes:02d}" / f"run{run}", "HPL.out", text)
    hpl = hpl_points.points(importing.dataset_of("hpl", [tmp_path]))
    said = [str(fall) for fall in hpl_points.falls(hpl)]
    assert any(name in sentence for sentence in said)
    assert not any("N (" in sentence.replace("NB (", "") for sentence in said)


def test_directions_are_apart_on_an_imports_page(tmp_path):
    """Each direction has its mean, with its number of runs."""
    for run in (1, 2, 3):
        for case in ("3.12-text", "3.12-text-reverse"):
            write(
                tmp_path / "10gbe" / f"run{run}",
                f"{case}.txt",
                recorded.text(case := f"iperf3/{case}") + "\n" * run,
            )
    said = save(imported("iperf3", tmp_path), tmp_path / "out")
    assert len(re.findall(r"\nTCP payload received on 10GE \((?:forward|reverse)\): ", said)) == 2


def test_dips_of_messages_are_found(tmp_path):
    """Bandwidth that falls by three eighths at 64 KiB, on each of two networks."""
    for network, factor in (("gige", 1.0), ("10gige", 4.0)):
        for run in (1, 2, 3):
            rates = {2**16: 50.0, 2**15: 80.0, 2**20: 100.0}
            rows = [
                f"{size} {factor * rates[size] * (1 + run / 1000):.2f}\n" for size in sorted(rates)
            ]
            text = "# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n" + "".join(rows)
            write(tmp_path / network / f"run{run}", "bw.out", text)
    found = messages.tables(importing.dataset_of("osu", [tmp_path]))
    dips = messages.dips(found)
    assert dips[["start", "end", "runs"]].values.tolist() == [[2**15, 2**16, 3]] * 2
    assert dips.fall.tolist() == pytest.approx([0.375] * 2)
