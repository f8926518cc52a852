"""Open MPI's order on real nodes by real ssh: the doctor and a run find that exchanges both ways
are slow, and that one parameter mends it. In slow motion, so that this machine keeps pace.
"""

import json
import re

import daemons
import nodes
import pytest
from user import CAMPAIGN, by_ssh, clone

from runners.engine import two_way


@pytest.fixture(scope="module")
def someone(needs):
    """A user of four nodes whose links carry 25 Mbit/s, and the configuration of ssh."""
    with nodes.up(4, slowness=40) as up:
        yield clone(up, daemons.ENVIRONMENT), daemons.ssh(up)


def test_the_doctor_finds_the_order_and_what_mends_it(someone):
    """Both measured; a program that is not there is named with the remedy."""
    user, config = someone
    user.describe("slow", by_ssh("slow", config))
    said = user.falloff("doctor", "--testbed", "slow").stdout
    (line,) = [line for line in said.splitlines() if "network gige" in line and "exchange" in line]
    stock, mended = map(float, re.findall(r"(\d\.\d\d) times", line))
    assert line.startswith("  slow ") and stock > 1.4 and mended < 0.8 * stock, line
    nowhere = {"[tools]\n": '[tools]\nexchange = "/nowhere/exchange"\n'}
    user.describe("without", by_ssh("without", config, nowhere))
    said = user.falloff("doctor", "--testbed", "without").stdout
    (line,) = [line for line in said.splitlines() if "network gige" in line and "exchange" in line]
    assert line.startswith("  unknown ") and "`make setup`" in line, line


def test_a_run_keeps_it_in_its_provenance(someone):
    """Once a session, whatever its trials are."""
    user, config = someone
    user.describe("slow", by_ssh("slow", config))
    done = user.falloff("run", CAMPAIGN, "--testbed", "slow", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    provenance = json.loads((user.folder("slow").path / "provenance.json").read_text())
    (session,) = provenance["sessions"]
    found = session["exchanges"]["gige"]
    stock, mended = two_way.ratio(found), two_way.ratio(found, "halo_without_put")
    assert stock > 1.4 and mended < 0.8 * stock, found
    assert "slows two-way exchanges" in done.stdout + done.stderr
