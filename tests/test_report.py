"""The report says what the data say, in both forms, without an outside request, in the same bytes."""

import re
from functools import cache

import pytest
import xarray as xr
from synthetic import campaign, sequential_campaign

from analysis import models, report
from analysis.paths import BIBLIOGRAPHY
from analysis.publish import TEMPLATES, to_html
from analysis.studies import together
from analysis.wording import plain
from synthetic_studies import blas_campaign, noise_campaign, size_campaign


def studies_of(dataset, today=None, **further):
    """The studies of a scaling campaign and of further campaigns."""
    return together.analyse({"hpl_scaling": dataset, **further}, {} if today is None else {"hpl_scaling": today})


def facts_of(dataset, today=None, **further):
    """What a report on these campaigns may quote."""
    return report.facts(studies_of(dataset, today, **further))


REFERENCE = campaign(blocks=6, noise=0.01)
TODAY = campaign(blocks=2, noise=0.01, seed=3)
REMEDY = "mpirun is missing: apt-get install openmpi-bin"


@cache
def all_studies():
    """The studies of the reference, of today's run and of three further campaigns."""
    further = {
        "hpl_size": size_campaign(blocks=4),
        "hpl_noise": noise_campaign(blocks=4),
        "hpl_blas": blas_campaign(blocks=4),
    }
    return studies_of(REFERENCE, TODAY, **further)


@cache
def studies_alone():
    """The studies of the reference alone."""
    return studies_of(REFERENCE)


@cache
def facts_alone():
    """What a report on the reference alone may quote."""
    return report.facts(studies_alone())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The report of all campaigns and today's run."""
    return report.build(all_studies(), tmp_path_factory.mktemp("report"), [])


@pytest.fixture(scope="module")
def pages(built):
    """The report and its supplement as HTML."""
    return [file.read_text(encoding="utf-8") for file in (built.html, built.supplement_html)]


@pytest.fixture(scope="module", params=["report", "supplement"])
def html(pages, request):
    """One page after the other."""
    return pages[["report", "supplement"].index(request.param)]


def text(known, *left_out, document="supplement"):
    """The Markdown of the document that says all, or of the report, without the escapes of data and hard spaces."""
    return report.text(known, list(left_out), document).replace("\u00a0", " ").replace("\\", "")


def first_page(known, *left_out, document="supplement"):
    """What the summary box on the first page holds."""
    return text(known, *left_out, document=document).split(":::")[1]


def primary(known):
    return known["scaling"]["contrasts"][0]


def test_both_forms_are_written(built, html):
    """There is a whole HTML page and a PDF, of the report and of its supplement."""
    assert html.lstrip().startswith("<!DOCTYPE html>") and html.rstrip().endswith("</html>")
    assert all(pdf.read_bytes().startswith(b"%PDF-") for pdf in (built.pdf, built.supplement_pdf))


def test_the_claims_are_kept_as_a_dataset(built):
    """The ledger lies beside the report: a verdict or a reason for every claim and kind of evidence."""
    with xr.open_dataset(built.html.with_name("claims.nc"), engine="netcdf4") as kept:
        assert kept.evidence.values.tolist() == ["published", "emulated"]
        assert kept.sizes["claim"] > 40 and (kept.verdict != "").all()


def test_html_asks_nothing_of_the_outside(html):
    """Style sheet, figures and mathematics are inside: no script, no link element, nothing remote."""
    assert not re.findall(r"<(?:script|link|iframe)\b", html)
    assert not re.findall(r"(?:src|srcset|poster|data)\s*=\s*[\"'](?!data:)", html)
    assert not re.findall(r"@import|url\(\s*[\"']?(?!data:)", html)


def test_html_carries_figures_with_descriptions_and_mathml(html):
    """Every figure is embedded and described for those who cannot see it."""
    images = re.findall(r"<img[^>]*>", html)
    assert images and all("data:image/svg+xml" in image for image in images)
    assert all(re.search(r"(?:alt|aria-label)=\"[^\"]{20,}\"", image) for image in images)
    assert "<math" in html


def test_the_supplement_shows_every_figure_and_the_report_some(pages):
    """Nothing that is drawn is left out of both."""
    of_report, of_supplement = (len(re.findall(r"<img[^>]*>", page)) for page in pages)
    assert 0 < of_report < of_supplement == len(report.draw(all_studies())) == 9


def test_html_knows_the_dark_and_the_phone(html):
    """The page adapts to a dark scheme and to a narrow screen."""
    assert "prefers-color-scheme: dark" in html and "width=device-width" in html


def test_rebuilding_gives_the_same_bytes(built, tmp_path):
    """The same data give the same files, whatever the day and the folder."""
    again = report.build(all_studies(), tmp_path, [])
    for name in ("html", "pdf", "supplement_html", "supplement_pdf"):
        assert getattr(again, name).read_bytes() == getattr(built, name).read_bytes()


def test_every_reference_is_numbered(html):
    """No link to a figure or table is left without its number."""
    linked = re.findall(r"<a href=\"#(?:fig|tbl):[^>]*>([^<]*)</a>", html)
    assert linked and all(re.fullmatch(r"(?:Figure|Table)\u00a0\d+", label) for label in linked)


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.md.j2")), ids=lambda file: file.name)
def test_no_number_is_typed_into_the_prose(template):
    """Outside of formulas, the only digits in the templates' text are the levels of the intervals."""
    prose = re.sub(
        r"\{\{.*?\}\}|\{%.*?%\}|<#.*?#>", "", template.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    prose = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", prose, flags=re.DOTALL)
    assert set(re.findall(r"\d+(?:\.\d+)?(?: %)?", prose)) <= {"90 %", "95 %"}


def test_the_reports_abstract_follows_the_data():
    """The verdict and the fall in the abstract are the facts'; experiments without data are not spoken of."""
    known = facts_of(campaign(blocks=6, noise=0.004, falls={"gige": 0.2}))
    said = " ".join(first_page(known, document="report").split())
    assert f"**GigE falls off**: against 10GE HPL loses {100 * primary(known)['fall']:.1f} % from 2 to 8 nodes" in said
    for word in ("second link", "oversubscription", "pays", "Simulated"):
        assert word not in said


def test_the_report_has_no_section_without_data():
    """Of a campaign alone there is its section and what holds for all; nothing else is announced."""
    said = text(facts_alone(), document="report")
    headings = re.findall(r"^# (.+?)(?: \{.*)?$", said, re.MULTILINE)
    assert headings == [
        "Introduction", "Methods", "HPL over few nodes", "The sources' claims", "Threats to validity", "References", "Appendix: error rates",
        "Appendix: provenance", "Appendix: settings",
    ]
    for source in ("nemo", "beowulf", "bonding", "gridfive"):
        assert f"@{source}" not in said and f"@{source}" in BIBLIOGRAPHY.read_text(encoding="utf-8").replace("{", "@")


def test_every_model_is_in_the_bibliography():
    """The source of each model's equation is among the references, by its DOI or its address."""
    entries = BIBLIOGRAPHY.read_text(encoding="utf-8")
    named = [re.search(r"https://(?:doi\.org/)?([^\s;,:]+)", models.find(name).source) for name in models.names()]
    assert len([link for link in named if link]) >= 6 and all(link[1] in entries for link in named if link)


@pytest.mark.parametrize(("planted", "word"), [(0.20, "falls off"), (0.12, "falls off"), (0.0, "flat")])
def test_prose_follows_the_data(planted, word):
    """Another fall gives another number and another verdict in the text, those of the facts."""
    data = campaign(blocks=6, noise=0.004, falls={"gige": planted})
    facts = facts_of(data)
    known, said = primary(facts), first_page(facts)
    assert known["answer"] == word and known["fall"] == pytest.approx(planted, abs=0.02)
    amount = f"{100 * known['fall']:.1f} %".replace("-", "\u2212")
    low, high = (f"{100 * end:.1f}".replace("-", "\u2212") for end in known["interval"])
    sentence = next(line for line in said.splitlines() if line.startswith("- **GigE against 10GE"))
    for part in (word, amount, f"{low} to {high} %", "6 blocks", "margin 5 %", "emulated evidence"):
        assert part in sentence


def test_undecided_says_why():
    """Neither word of a decision is used, and the reason is the judgement's."""
    data = campaign(blocks=3, noise=0.03, falls={"gige": 0.07}, seed=6)
    facts = facts_of(data)
    known, said = primary(facts), first_page(facts).splitlines()
    assert known["answer"] == "undecided"
    sentence = next(line for line in said if line.startswith("- **GigE against 10GE"))
    assert "is undecided" in sentence and known["reason"] in sentence


def test_statements_stand_in_their_order_with_their_node_counts():
    """A campaign with planned looks says which it took, and each statement its own span."""
    facts = facts_of(sequential_campaign(noise=0.004))
    said = first_page(facts)
    for words in ("GigE against 10GE falls off by", "from 2 to 8 nodes", "from 8 to 16 nodes", "96 % interval"):
        assert words in said
    whole = " ".join(text(facts).split())
    assert "judged after 4, 6, 9 valid blocks" in whole and "expected: falls off" in whole


def test_a_failed_control_is_said():
    """The first page has no answer where the negative control failed, and the reason."""
    said = first_page(facts_of(sequential_campaign(alone=0.1, noise=0.004)))
    assert "is not judged" in said and "refused: the negative control failed" in said


def test_a_single_block_has_no_interval():
    """Without an interval the text makes none up."""
    said = first_page(facts_of(campaign(blocks=1)))
    assert (
        "interval" not in said.replace("has no interval", "")
        and "undecided" in said
        and "nan" not in said.lower()
    )


def test_today_is_judged_and_the_verdicts_are_the_references(html):
    """The first page says whether today reproduces the reference, and whose verdicts are shown."""
    known = facts_of(REFERENCE, TODAY)["scaling"]
    assert known["today"]["contrasts"][0]["blocks"] == 2
    assert known["contrasts"] == facts_alone()["scaling"]["contrasts"]
    assert "All verdicts are the reference" in html.replace("\n", " ")


@pytest.mark.parametrize(
    ("fall", "noise", "words"),
    [(0.13, 0.002, "reproduces"), (0.5, 0.002, "does not reproduce"), (0.13, 0.1, "is too short to tell of")],
)
def test_today_reproduces_or_not(fall, noise, words):
    """Its fall against the reference's, as a sentence of the first page."""
    other = campaign(blocks=3, noise=noise, falls={"gige": fall}, seed=4)
    calm = campaign(blocks=6, noise=0.002)
    assert f"{words} GigE / 10GE" in first_page(facts_of(calm, other))


def test_without_a_run_of_today_nothing_is_said_of_it():
    """No section, no mark and no sentence about a run that there was not."""
    assert "oday" not in text(facts_alone())


def test_first_page_says_stored_and_why():
    """Where nothing could be measured, the first page says so with the remedy."""
    said = first_page(facts_alone(), REMEDY)
    assert "stored reference" in said and REMEDY in said
    assert "stored" not in first_page(facts_alone())


def test_sections_without_data_vanish():
    """Without a survey there is neither a section on links nor a figure of them."""
    surveyed = text(facts_alone())
    blind = text(facts_of(REFERENCE.isel(trial=(REFERENCE.role != "survey").values)))
    for section in ("# Links", "figures/links.svg"):
        assert section in surveyed and section not in blind


def test_further_campaigns_appear_with_their_data_only():
    """A campaign has its section, its finding on the first page and its row among the campaigns, or nothing."""
    whole, alone = report.facts(all_studies()), facts_alone()
    for name, section, finding in (
        ("size", "# Efficiency over the size", "With a large matrix"),
        ("noise", "# Daemons on every node", "A daemon that takes"),
        ("blas", "# The library under HPL", "With OpenBLAS HPL is"),
    ):
        assert section in text(whole) and finding in first_page(whole) and f"| hpl_{name} |" in text(whole)
        assert section not in text(alone) and finding not in first_page(alone) and f"hpl_{name}" not in text(alone)


def test_secondary_statements_are_corrected_within_their_campaign():
    """Further campaigns change no p; the primary statement is not corrected."""
    first, *others = all_studies().scaling.contrasts
    assert first.verdict.p_holm is None and all(it.verdict.p_holm >= it.verdict.p for it in others)
    assert [it.verdict for it in others] == [it.verdict for it in studies_alone().scaling.contrasts[1:]]


def test_models_that_the_data_cannot_carry_are_refused_by_name():
    """Four node counts bracket a breakpoint; the law with three parameters has no AICc."""
    said = " ".join(text(facts_alone()).split())
    assert "model is refused on GigE" in said and "cannot carry a breakpoint; it lies between" in said
    assert "has no AICc: 4 distinct x do not exceed 3 parameters + 1" in said


def test_failed_trials_are_listed():
    """The appendix names what has no result, with the reason, and nothing when all went well."""
    said = text(facts_of(campaign(blocks=4, failed=[(3, "gige", 8)])))
    assert "planted fault" in said
    assert "trials gave a valid result" in text(facts_alone())


def test_the_papers_limits_are_stated():
    """Wherever the paper is, so are its confound and the loss of its curves."""
    said = " ".join(text(facts_alone()).split())
    assert "RDMA on 10GE, TCP on Gigabit Ethernet" in said and "curves are lost" in said


def test_what_tools_print_is_text_and_never_markup(tmp_path):
    """A reason with the signs of Markdown and HTML is shown as it is."""
    hostile = 'died: a|b <script>x</script> *bold* [link](there) {{ 1 }} "quoted"'
    page = to_html(f"- {plain(hostile)}", tmp_path)
    assert "<script" not in page and "<em>" not in page and "<a " not in page
    assert "died: a|b &lt;script&gt;x&lt;/script&gt; *bold* [link](there) {{ 1 }}" in page


def test_every_verdict_carries_the_caveat():
    """With what all of a dataset's numbers have to be read stands behind each verdict on HPL."""
    dataset = campaign(blocks=3)
    dataset.attrs["caveat"] = "The nodes were not paced."
    said = report.verdicts(report.facts(studies_of(dataset))).strip().splitlines()
    assert len(said) == 4 and all("nodes were not paced" in line for line in said)
