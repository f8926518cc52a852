"""Figures and tables say what they show: without unit, n or kind of interval none can be made."""

import pytest
from matplotlib.figure import Figure
from synthetic import campaign

from analysis.exhibit import KEY, Answer, Basis, Exhibit, Table, planned
from runners.record import FalloffError

BASIS = Basis("emulated", 4, "95 % t intervals")


def drawn(x="nodes", y="HPL rate [Gflop/s]"):
    figure = Figure()
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure


def exhibit(**changes):
    given = {"figure": drawn(), "shows": "HPL over nodes", "basis": BASIS, "alt": "HPL over nodes"}
    return Exhibit("rate", **{**given, **changes})


@pytest.mark.parametrize("evidence", ["emulated", "measured"])
@pytest.mark.parametrize("rest", [{}, {"n": 4}, {"intervals": "95 % t intervals"}])
def test_what_scatters_says_n_and_its_intervals(evidence, rest):
    with pytest.raises(FalloffError, match="its n and the kind of its intervals"):
        Basis(evidence, **rest)


def test_a_simulation_repeats_itself():
    assert str(Basis("simulated")) == "simulated evidence"


@pytest.mark.parametrize("labels", [{"y": "HPL rate"}, {"x": "buffer"}, {"x": "", "y": ""}])
def test_an_axis_without_a_unit_is_refused(labels):
    with pytest.raises(FalloffError, match="rate: .*(no unit|no axis)"):
        exhibit(figure=drawn(**labels))


def test_a_caption_stands_alone():
    """Jupyter shows figure and caption, the report finds them in the output's metadata."""
    made = exhibit(marks="Bars are means.", rests_on=("hpl_scaling",))
    caption = (
        "HPL over nodes (emulated evidence, n = 4\u00a0blocks, 95 % t intervals). Bars are means."
    )
    data, about = made._repr_mimebundle_()
    assert (
        made.caption == caption
        and caption in data["text/html"]
        and data["image/svg+xml"].startswith("<?xml")
    )
    assert about[KEY]["label"] == "rate" and about[KEY]["rests_on"] == ["hpl_scaling"]
    assert (
        about[KEY]["markdown"]
        == f'![{caption}](figures/rate.svg){{#fig:rate alt="HPL over nodes"}}'
    )


def test_a_figure_gives_the_same_bytes():
    assert exhibit().svg() == exhibit().svg()


def test_a_table_has_its_columns_and_its_caption():
    table = Table(
        "rates", ("Network", "Rate [Gflop/s]"), "lr", [("GigE", "1.2")], "The rates.", BASIS
    )
    assert table.body == "| Network | Rate [Gflop/s] |\n| :-- | --: |\n| GigE | 1.2 |"
    assert table.markdown.endswith(
        "The rates (emulated evidence, n = 4\u00a0blocks, 95 % t intervals). {#tbl:rates}"
    )
    with pytest.raises(FalloffError, match="not 2 columns"):
        Table("rates", ("Network", "Rate"), "lr", [("GigE",)], "The rates.")


def test_an_answer_is_words_and_data():
    data, about = Answer("**It falls off.**")._repr_mimebundle_()
    assert (
        data["text/markdown"] == about[KEY]["markdown"] == "**It falls off.**"
        and about[KEY]["findings"] == []
    )


def test_the_plan_names_factors_levels_and_repeats():
    rows = dict(planned(campaign(blocks=3)).rows)
    assert rows["nodes"] == "1, 2, 4, 8" and "3\u00a0blocks of 12\u00a0trials" in rows["repeats"]
