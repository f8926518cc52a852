"""Whether an exchange both ways is as fast as one way: what is asked of a cluster, and said of it.

That Open MPI's order is really found is asked in tests/cluster/test_two_way.py.
"""

from contextlib import contextmanager, nullcontext

import pytest

from runners.engine import doctor, session, two_way
from runners.records import lock
from runners.records.record import Execution, FalloffError, Transcript
from runners.testbeds import cluster

GIGE = {"subnet": "10.1.0.0/24"}
OWN = {**GIGE, "mpi": ["--mca", "pml", "ucx"]}
HOSTS = ("n1", "n2", "n3", "n4", "n5")
FOUND = {"nodes": 4, "bytes": 262144, "one_way": 0.002, "halo": 0.00344}


class Planted(cluster.OnCluster):
    """A cluster on paper, on which an exchange both ways takes `slower` times as long as one way,
    and 1.02 times without put; `lacks` what `require` complains of, or is empty."""

    slower, lacks, fault = 1.72, "", ""

    def require(self, needs):
        """The tool is there, or not."""
        if self.lacks:
            raise FalloffError(self.lacks)
        self.paths.update({tool: f"/opt/{tool}" for tool in needs})

    def run(self, trial, commands):
        """Print what the program would."""
        (command,) = commands
        words = self.argv(command, HOSTS, trial.point["interconnect"])
        slower = 1.02 if "btl_tcp_flags" in words else self.slower
        times = {"one_way": 0.016, "halo": 0.016 * slower}
        rows = [
            f"{name} {command.argv[4]} 8 {times[name]:.9f}" + f" {times[name]:.9f}" * 9
            for name in command.argv[3].split(",")
        ]
        text = "\n".join(["exchange: 4 ranks, 4 rounds, 9 repetitions", *rows, "end of exchange\n"])
        ran = (Execution("exchange", tuple(words), text, "", 0, 0.0, 1.0),)
        return Transcript(trial, "mine", "measured", ran, {}, {}, {}, self.fault)


def planted(networks, hosts=HOSTS, **changed):
    """Such a cluster, open."""
    description = {"name": "mine", "kind": "cluster", "launcher": "ssh"}
    description.update(hosts=list(hosts), networks=networks)
    places = {
        host: dict.fromkeys(networks, cluster.Place("eth0", f"10.1.0.{number}"))
        for number, host in enumerate(hosts, 1)
    }
    testbed = Planted(description, networks, "/tmp/folder", "/opt/mpirun", places=places)
    for name, value in changed.items():
        object.__setattr__(testbed, name, value)
    return testbed


def test_a_slow_exchange_is_told_with_what_mends_it():
    """Where Open MPI sends by TCP it is tried; by another transport there is nothing to set."""
    told = []
    found = two_way.measured(planted({"gige": GIGE, "ib": OWN}), told.append)
    assert two_way.ratio(found["gige"]) == pytest.approx(1.72)
    assert two_way.ratio(found["gige"], "halo_without_put") == pytest.approx(1.02)
    gige, infiniband = told
    assert "your MPI slows two-way exchanges" in gige and "256 KiB takes 1.72 times" in gige
    assert "with btl_tcp_flags=1 1.02 times" in gige
    assert "1.72 times" in infiniband and "btl_tcp_flags" not in infiniband
    assert "halo_without_put" not in found["ib"]


def test_a_fast_exchange_is_no_complaint():
    """Up to the margin."""
    (told,) = [two_way.sentence("gige", {**FOUND, "halo": 1.09 * FOUND["one_way"]})]
    assert "slows" not in told and "1.09 times as long as one way (4 nodes)" in told


@pytest.mark.parametrize(
    ("hosts", "changed", "reason"),
    [
        (HOSTS[:3], {}, "it needs four nodes, and there are 3"),
        (HOSTS, {"lacks": "exchange is no program on n2"}, "`make setup`"),
        (HOSTS, {"fault": "n2 is lost"}, "n2 is lost"),
    ],
)
def test_what_is_not_measured_says_why(hosts, changed, reason):
    """In a line, and nothing else is kept; a campaign goes on."""
    told = []
    found = two_way.measured(planted({"gige": GIGE}, hosts, **changed), told.append)
    assert list(found["gige"]) == ["not_measured"] and two_way.ratio(found["gige"]) is None
    assert "not measured" in told[0] and reason in told[0] and "\n" not in told[0]


def test_a_session_keeps_it_in_its_provenance_and_tells_it():
    """Of measured nodes alone: emulated and simulated campaigns state how they send."""
    told = []
    kept = session.exchanges(planted({"gige": GIGE}), told.append)
    assert kept["exchanges"]["gige"]["nodes"] == 4
    assert [event.kind for event in told] == ["message"] and "1.72" in told[0].message
    other = planted({"gige": GIGE}, evidence="emulated")
    assert session.exchanges(other, told.append) == {} and len(told) == 1


@pytest.mark.parametrize(
    ("slower", "mark"), [(1.72, doctor.SLOW), (1.01, doctor.HERE)], ids=["slow", "as fast"]
)
def test_the_doctor_marks_it(monkeypatch, slower, mark):
    """A slow exchange is no fault of the nodes: it is neither MISSING nor DIFFERS."""
    opened = planted({"gige": GIGE}, slower=slower)
    monkeypatch.setattr(cluster, "open_testbed", lambda *_: nullcontext(opened))
    (line,) = doctor.exchanges(opened.description)
    assert line.mark == mark and f"{slower:.2f} times" in line.text


def test_the_doctor_disturbs_no_other_measurement(monkeypatch):
    """It does not wait for it either."""

    @contextmanager
    def taken(testbed, what, wait, folder=""):
        wait("campaign hpl is measuring here")
        yield True

    monkeypatch.setattr(lock, "measuring", taken)
    (line,) = doctor.exchanges({"name": "mine", "networks": {"gige": GIGE}})
    assert line.mark == doctor.UNKNOWN and "campaign hpl is measuring here" in line.text
