"""The twelve rules: of each an exhibit that breaks it is refused with number and mend, and its twin passes."""

import re
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from analysis.rules import check
from analysis.rules.exhibits import Exhibit, exhibits
from analysis.rules.rules import BROKEN, EXEMPT, RULES, SAID, SEEN
from runners.record import FalloffError

CAPTION = "Rate over nodes (emulated evidence, n = 5 blocks). Open marks are harmonic means with 95 % t intervals."
RATE = Exhibit("fig:x", ("rate",), ("run",), repeated="block", summary="mean", bound="the wire", lines=("model",))
RATIO = replace(RATE, shows=("ratio",), base="the other network in the same block")
TIME = replace(RATE, label="tbl:x", shows=("cost",))
KNOWN = check.Known({"run": frozenset({"hpl"})}, frozenset({"run"}), frozenset({"hpl"}))


def figure(ylabel="rate [Gflop/s]", joined="", **curve):
    """Means with bars over nodes, and a curve or a line through them."""
    drawn = Figure()
    axes = drawn.subplots()
    axes.errorbar([1, 2, 4], [1, 2, 3], [0.1, 0.2, 0.3], fmt="o")
    axes.plot([1, 2, 4], [1, 2, 3], f"o{joined}")
    if curve:
        axes.plot([1, 1.5, 2, 3, 4], [1, 1.4, 2, 2.4, 3], **curve)
    axes.set(xlabel="nodes", ylabel=ylabel)
    return drawn


def table(caption, columns="Nodes | Time [s] | Blocks", row="2 | 1.5 | 5"):
    """A table's Markdown as the templates leave it, with blank lines between the rows."""
    return f"| {columns} |\n\n|--:|--:|--:|\n\n| {row} |\n\nTable: {caption} {{#tbl:x}}\n"


def found(told, caption=CAPTION, drawn=None, known=KNOWN, markdown=""):
    """What each rule finds of one exhibit."""
    markdown = markdown or f'![{caption}](figures/x.svg){{#fig:x alt="x"}}\n'
    (judged,), faults = check.judge({"x": drawn or figure()}, markdown, {told.label: told}, known)
    for number, finding in judged.findings.items():
        said = [fault for fault in faults if f"breaks rule {number}:" in fault]
        assert bool(said) == (finding.kind == BROKEN) and all(re.search(r"Mend: \w+", fault) for fault in said)
    return {number: finding.kind for number, finding in judged.findings.items()}


def broken(*args, **named):
    return {number for number, kind in found(*args, **named).items() if kind == BROKEN}


GEOMETRIC = CAPTION.replace("harmonic", "geometric")
SHARE = figure("share [%]")
ELSEWHERE, UNBOUND = replace(RATIO, absolute="tbl:none"), replace(RATE, bound="")
LATENCY = "Round trips (emulated evidence): arithmetic means with 95 % t intervals."


def test_a_good_figure_and_a_good_table_pass():
    """Of rates, of ratios and of costs; what does not apply is said not to."""
    kinds = found(RATE, drawn=figure(gid="model"))
    assert BROKEN not in kinds.values() and kinds[1] == kinds[4] == EXEMPT and kinds[3] == kinds[12] == SEEN
    kinds = found(RATIO, GEOMETRIC, SHARE)
    assert BROKEN not in kinds.values() and kinds[3] == EXEMPT and kinds[4] == SEEN and kinds[1] == SAID
    assert not broken(TIME, markdown=table("Times (emulated evidence): arithmetic means with 95 % t intervals."))


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (1, (replace(RATIO, base=""), GEOMETRIC, SHARE), (RATIO, GEOMETRIC, SHARE)),
        (1, (ELSEWHERE, GEOMETRIC, SHARE), (replace(ELSEWHERE, absolute="fig:x"), GEOMETRIC, SHARE)),
        (2, (RATE, f"{CAPTION} The best runs."), (replace(RATE, subset="no others are known"), f"{CAPTION} The best runs.")),
        (3, (RATE, CAPTION.replace("harmonic", "arithmetic")), (RATE, CAPTION)),
        (3, (RATE, CAPTION.replace("harmonic means", "means")), (RATE, CAPTION)),
        (3, (RATIO, GEOMETRIC, figure("rate [Gbit/s]")), (RATIO, GEOMETRIC, SHARE)),
        (4, (RATIO, CAPTION.replace("harmonic", "arithmetic"), SHARE), (RATIO, GEOMETRIC, SHARE)),
        (5, (RATE, "Rate (emulated evidence, n = 5 blocks), harmonic means."), (RATE, CAPTION)),
        (5, (RATE, CAPTION.replace(", n = 5 blocks", "")), (RATE, CAPTION)),
        (6, (replace(RATE, of=("run", "other")), CAPTION, None, replace(KNOWN, runners=None)), (RATE, CAPTION)),
        (7, (UNBOUND, "Verdicts (emulated evidence, n = 5 blocks): harmonic means."), (RATE, f"Verdicts. {CAPTION}")),
        (9, (RATE, CAPTION.replace("emulated evidence, ", "")), (RATE, CAPTION)),
        (9, (replace(RATE, of=("unheard",)), CAPTION), (RATE, CAPTION)),
        (10, (RATE, CAPTION, None, replace(KNOWN, timed=frozenset())), (RATE, CAPTION)),
        (11, (UNBOUND, CAPTION), (replace(UNBOUND, lines=("bound",)), CAPTION, figure(gid="bound"))),
        (11, (replace(RATE, lines=("bound",)), CAPTION), (RATE, CAPTION)),
        (12, (RATE, CAPTION, figure("rate")), (RATE, CAPTION, figure("rate [flop/s]"))),
        (12, (RATE, CAPTION, figure(joined="-")), (RATE, CAPTION, figure())),
        (12, (RATE, CAPTION, figure(color="k")), (RATE, CAPTION, figure(gid="model"))),
        (12, (replace(RATE, lines=()), CAPTION, figure(gid="model")), (RATE, CAPTION, figure(gid="model"))),
    ],
)  # fmt: skip
def test_a_bad_figure_is_refused_by_its_rule(rule, bad, good):
    """By this rule's number, and its twin without the fault by none."""

    def judged(told, caption, drawn=None, known=KNOWN):
        return broken(told, caption, drawn, known)

    assert rule in judged(*bad)
    assert not judged(*good)


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (8, table(LATENCY), table(f"{LATENCY} The 99 % quantile stands beside them.")),
        (12, table(LATENCY + " 99 % quantile.", "Nodes | Time | Blocks"), table(LATENCY + " 99 % quantile.")),
        (3, table(LATENCY.replace("arithmetic", "harmonic") + " 99 % quantile."), table(LATENCY + " 99 % quantile.")),
    ],
)
def test_a_bad_table_is_refused_by_its_rule(rule, bad, good):
    """Waiting times without a tail, a column without a unit, times averaged as rates."""
    assert rule in broken(TIME, markdown=bad)
    assert not broken(TIME, markdown=good)


def test_a_line_through_the_marks_is_no_model_whatever_it_says():
    """Its vertices are the points: a declared model does not make it one, and steps between them are no line."""
    liar = figure()
    liar.axes[0].plot([1, 2, 4], [1, 2, 3], "-", gid="model")
    assert broken(RATE, drawn=liar) == {12}
    honest = figure()
    honest.axes[0].plot([1, 2, 4], [1, 2, 3], "-", drawstyle="steps-post")
    assert not broken(replace(RATE, lines=("steps",)), drawn=honest)


def test_an_axis_may_be_named_by_its_neighbours():
    """Shared labels count, rows of names need no unit, and a panel without any label is found."""
    drawn = Figure()
    left, right = drawn.subplots(1, 2)
    for axes in (left, right):
        axes.plot([1, 2, 3], [1, 2, 3], "o")
        axes.set_xlabel("nodes")
    assert 12 in broken(replace(RATE, summary="all"), drawn=drawn)
    left.set_ylabel("rate [bit/s]")
    right.set_yticks([1, 2, 3], ["GigE", "10GE", "control"])
    assert 12 not in broken(replace(RATE, summary="all"), drawn=drawn)


def test_what_is_not_declared_or_not_there_is_a_fault():
    """A figure without an entry, and an entry of a campaign that was run without a figure."""
    markdown = f'![{CAPTION}](figures/x.svg){{#fig:x alt="x"}}\n'
    assert "fig:x has no entry" in check.judge({}, markdown, {})[1][0]
    missing = {"fig:gone": replace(RATE, label="fig:gone")}
    assert "fig:gone is an entry without" in check.judge({}, "", missing, KNOWN)[1][0]
    assert not check.judge({}, "", {"fig:gone": replace(missing["fig:gone"], when="sometimes")}, KNOWN)[1]
    assert not check.judge({}, "", missing, replace(KNOWN, runners={}))[1]


def test_ours_fails_the_build_and_a_users_gets_a_note(capsys):
    """With the rule's number and the mend in both."""
    markdown = f'![{CAPTION}](figures/x.svg){{#fig:x alt="x"}}\n'
    _, faults = check.judge({"x": figure("rate")}, markdown, {"fig:x": RATE}, KNOWN)
    with pytest.raises(FalloffError, match="fig:x breaks rule 12: .* has no unit. Mend: say the unit"):
        check.require(faults, own=False)
    check.require(faults, own=True)
    assert re.fullmatch(r"note: fig:x breaks rule 12: .*\n", capsys.readouterr().err)
    check.require((), own=False)


def test_the_entries_can_be_read_and_a_wrong_one_is_named(tmp_path):
    """All shipped ones declare a kind; a slip of the pen in one says which."""
    assert len(RULES) == 12 and all(it.shows for it in exhibits().values())
    file = tmp_path / "exhibits.toml"
    file.write_text('[[exhibit]]\nlabels = ["fig:a"]\nshows = ["speed"]\nbounds = "x"\n')
    with pytest.raises(FalloffError, match="fig:a: 'bounds', 'speed' cannot stand there"):
        exhibits(file)
