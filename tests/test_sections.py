"""The sections of the further HPL campaigns say what the data say, however few these are."""

import re

import pytest
from synthetic_studies import blas_campaign, size_campaign

from analysis import style, wording
from analysis.facts import blas as blas_facts
from analysis.facts import size as size_facts
from analysis.facts.published import published_sources
from analysis.figures import blas as blas_figures
from analysis.figures import size as size_figures
from analysis.publish import to_html, to_pdf
from analysis.studies import blas, size

CAMPAIGNS = {
    "size": (size_campaign, size, size_facts, size_figures),
    "blas": (blas_campaign, blas, blas_facts, blas_figures),
}
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


def known(name, **chance):
    """The facts of a synthetic campaign."""
    make, study, facts, _ = CAMPAIGNS[name]
    return facts.collect(study.analyse(make(**chance)))


def section(name, facts):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template(f"{name}.md.j2")
    return template.render({name: facts, "published": published_sources()}).replace("\u00a0", " ")


def finding(name, **chance):
    return wording.finding(name, known(name, **chance)).replace("\u00a0", " ")


@pytest.mark.parametrize(
    "chance",
    [{"blocks": 4}, {"blocks": 1}],
    ids=["four", "one"],
)
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_sections_make_no_number_up(name, chance):
    """With four blocks or one, every sentence and table is whole, and no NaN or None is shown."""
    said = section(name, known(name, **chance))
    assert not re.search(r"\b(nan|None)\b", said)
    assert (" % interval " in finding(name, **chance)) == (chance["blocks"] > 1)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_findings_carry_the_caveat(name):
    """With what all of a dataset's numbers have to be read stands behind what was found."""
    facts = known(name, blocks=4)
    assert "paced\\." not in wording.finding(name, facts)
    assert wording.finding(name, {**facts, "caveat": "Nothing was paced."}).endswith("Nothing was paced\\.")


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_sections_become_both_forms(name, tmp_path):
    """Figures, tables and references are all there, in HTML and in PDF."""
    make, study, facts, figures = CAMPAIGNS[name]
    analysed = study.analyse(make(blocks=2))
    style.save_all(figures.draw(analysed), tmp_path / "figures")
    markdown = FRONT + section(name, facts.collect(analysed))
    page = to_html(markdown, tmp_path)
    assert page.count("<img") == len(figures.draw(analysed)) and "<table" in page
    assert to_pdf(markdown, tmp_path, 0).startswith(b"%PDF-")


def test_without_a_fit_the_section_refers_to_no_table_of_it(tmp_path):
    """A campaign without a whole block still becomes a page."""
    failed = {(1, network, 4, 7168) for network in ("gige", "10gige")}
    dataset = size_campaign(blocks=1, failed=failed)
    style.save_all(size_figures.draw(size.analyse(dataset)), tmp_path / "figures")
    assert "refused" in to_html(FRONT + section("size", known("size", blocks=1, failed=failed)), tmp_path)


def test_what_was_left_out_is_listed_with_its_levels():
    """A failed run stands in the list with its reason."""
    facts = known("size", blocks=3, failed={(1, "10gige", 4, 7168)})
    template = wording.templates().from_string(
        '{% from "studies.md.j2" import left_out %}{{ left_out(size) }}'
    )
    said = template.render(size=facts).replace("\\", "")
    assert "(hpl, 10GE): failed. planted fault" in said


def test_findings_follow_the_data():
    """Other data give other numbers and other words."""
    assert "they agree within the margin" in finding("size", blocks=4, noise=0.002)
    assert "is 6.00 times as fast" in finding("blas", blocks=4, factor=6.0, noise=0)
    assert "more than doubled" in finding("blas", blocks=4)
    assert "less than doubled" in finding("blas", blocks=4, factor=1.5)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(12.5, "12.5 s"), (0.0286, "28.6 ms"), (6.8e-8, "68.0 ns"), (0.0, "0.00 ns"), (None, "—")],
)
def test_durations_have_the_unit_that_fits(seconds, written):
    """A time is a plain number in its unit."""
    assert wording.duration(seconds).replace("\u00a0", " ") == written


def test_an_interval_of_times_has_one_unit():
    """Both ends are in the unit of the larger one, with a real minus."""
    assert wording.duration_range((-2e-9, 3.1e-8)).replace("\u00a0", " ") == "\u22122.00 to 31.0 ns"
    assert wording.duration_range((2e-4, 0.012)).replace("\u00a0", " ") == "0.200 to 12.0 ms"
    assert wording.duration_range(None) == "—"
