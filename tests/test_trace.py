"""A figure's chain ends at the very bytes that its datasets were made of."""

import hashlib
import json
import re

import pytest
from command_line import ROOT, run

from runners import archive, manifest

REFERENCE = ROOT / "data" / "reference"


def test_a_chain_ends_at_the_raw_transcripts():
    """Every dataset of the figure, every transcript of it with its own SHA-256, command line, exit code and time."""
    done = run("trace", "table1", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["drawn_by"] == "analysis.experiments.hpl_table1.figures"
    assert list(told["datasets"]) == ["hpl_table1", "hpl_paper"] and list(told["files"]) == ["published/smith.toml"]
    for (name, dataset), testbed in zip(told["datasets"].items(), ("scale_model", "smith")):
        chain = dataset["campaigns"][0]
        folder = REFERENCE / f"{name}-{testbed}"
        raw = dict(archive.read(folder / archive.NAME))
        assert ROOT / chain["folder"] == folder and chain["command"] == f"falloff run {name} --testbed {testbed}"
        assert {link["trial"]: link["sha256"] for link in chain["links"]} == {
            trial: hashlib.sha256(text).hexdigest() for trial, text in raw.items()
        }
        assert chain["transcripts_sha256"] == manifest.together(raw)
        for link in chain["links"]:
            assert ROOT / link["file"] == folder / archive.NAME and link["member"] == link["trial"]
            executed = json.loads(raw[link["trial"]])["executions"]
            assert [it["argv"] for it in link["executed"]] == [it["argv"] for it in executed]
            assert all(it["exit_code"] == 0 and it["start"] and it["wall_s"] > 0 for it in link["executed"])


def test_the_text_says_the_same():
    """Digests, the command and a line for each command line; files of data/ that the figure shows beside them."""
    chain = json.loads(run("trace", "payload", "--json").stdout)["datasets"]["hpl_payload"]["campaigns"][0]
    said = run("trace", "payload").stdout
    for key in ("campaign_sha256", "dataset_sha256", "transcripts_sha256", "command", "folder"):
        assert chain[key] in said
    assert all(link["sha256"] in said for link in chain["links"])
    digest = hashlib.sha256((ROOT / "data" / "prices.toml").read_bytes()).hexdigest()
    assert re.search(rf"File data/prices.toml\n  sha256     {digest}", run("trace", "payoff").stdout)


def test_a_transcript_is_printed_as_it_was():
    """What the tool printed, under its command line; as JSON, the bytes of the file."""
    raw = dict(archive.read(REFERENCE / "hpl_payload-scale_model" / archive.NAME))["b001-002-hpl"]
    done = run("trace", "payload", "--transcript", "hpl_payload-scale_model/b001-002-hpl")
    (executed,) = json.loads(raw)["executions"]
    assert (
        executed["stdout"].strip() in done.stdout
        and done.stdout.startswith("$ nsenter")
        and "exit code 0]" in done.stdout
    )
    as_json = run("trace", "payload", "--transcript", "b001-002-hpl", "--json")
    assert as_json.stdout == raw.decode() + "\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sahre",), "no figure 'sahre'; there are: agreement, "),
        (
            ("payload", "--transcript", "b009-001-hpl"),
            "no campaign of figure payload has a transcript 'b009-001-hpl'",
        ),
        (("table1", "--transcript", "x/b001-001-hpl"), "they are: hpl_table1-scale_model, hpl_paper-smith"),
    ],
)
def test_mistakes_are_answered_in_a_line(arguments, said):
    """With what there is instead."""
    done = run("trace", *arguments)
    assert (done.returncode, done.stdout) == (1, "") and said in done.stderr and len(done.stderr.splitlines()) == 1
