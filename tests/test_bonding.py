"""/proc/net/bonding as real machines print it: what it says, and whether such a bond aggregates."""

from pathlib import Path

import pytest

from runners import bonding
from runners.bonding import Bond, Slave
from runners.record import Unreadable

FOLDER = Path(__file__).resolve().parent / "bonding"
FILES = sorted(FOLDER.glob("*.txt"))

# mode, hash policy, LACP partner, active aggregator, and of each slave: name, link, speed [Mbit/s], aggregator
EXPECTED = {
    "802.3ad-layer2-no-partner": (
        "802.3ad", "layer2", "00:00:00:00:00:00", 3, [("eth1", True, None, 3), ("eth2", True, None, 2)],
    ),
    "802.3ad-layer2-partner": (
        "802.3ad", "layer2", "58:6a:b1:c7:02:fa", 2, [("ens1f0", True, 10000, 2), ("ens1f1", True, 10000, 2)],
    ),
    "802.3ad-layer34-partner": (
        "802.3ad", "layer3+4", "c2:d6:82:fb:f0:12", 1, [("enp65s0f0", True, 25000, 1), ("enp65s0f1", True, 25000, 1)],
    ),
    "802.3ad-no-aggregator": ("802.3ad", "layer2", None, None, [("eth1", True, None, None), ("eth2", True, None, None)]),
    "802.3ad-one-link-down": (
        "802.3ad", "layer3+4", "00:00:00:00:00:00", 2, [("enp1s0f0", False, None, 1), ("enp1s0f1", True, 1000, 2)],
    ),
    "802.3ad-seen-by-a-user": ("802.3ad", "layer2", None, None, [("em1", True, 100, 1), ("em2", True, 100, 2)]),
    "active-backup": ("active-backup", None, None, None, [("em3", True, 1000, None), ("p2p3", True, 1000, None)]),
    "balance-rr": ("balance-rr", None, None, None, [("eth1", True, 1000, None), ("eth2", True, 1000, None)]),
    "balance-xor": ("balance-xor", "layer2+3", None, None, [("eno1", True, 1000, None), ("eno2", True, 1000, None)]),
}  # fmt: skip

# Whether it aggregates, and words of the reason.
JUDGED = {
    "802.3ad-layer2-no-partner": (False, "no LACP partner answers"),
    "802.3ad-layer2-partner": (True, "by hash layer2"),
    "802.3ad-layer34-partner": (True, "by hash layer3+4"),
    "802.3ad-no-aggregator": (False, "agreed on nothing"),
    "802.3ad-one-link-down": (False, "1 of its 2 slaves has a link"),
    "802.3ad-seen-by-a-user": (False, "different aggregators"),
    "active-backup": (False, "mode active-backup"),
    "balance-rr": (True, "frame by frame"),
    "balance-xor": (True, "by hash layer2+3"),
}


def bond(*aggregators, mode="802.3ad", partner="58:6a:b1:c7:02:fa", active=1):
    """A bond whose slaves have links and these aggregators."""
    slaves = tuple(Slave(f"eth{number}", True, 1e9, it) for number, it in enumerate(aggregators))
    return Bond(mode, "layer2", slaves, active, partner)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_real_files_are_read(file):
    """Mode, hash, partner, aggregators and slaves, of drivers from 2008 on."""
    found = bonding.parse(file.read_text())
    mode, policy, partner, aggregator, slaves = EXPECTED[file.stem]
    assert (found.mode, found.hash_policy, found.partner, found.aggregator) == (
        mode,
        policy,
        partner,
        aggregator,
    )
    wanted = [(name, up, speed and speed * 1e6, group) for name, up, speed, group in slaves]
    assert [(it.name, it.is_up, it.speed_bit_s, it.aggregator) for it in found.slaves] == wanted


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_real_bonds_are_judged(file):
    """A bond that is only failover is told from one that aggregates, in a sentence."""
    found = bonding.judge(bonding.parse(file.read_text()))
    aggregates, words = JUDGED[file.stem]
    assert found.aggregates is aggregates and words in found.reason


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_that_is_cut_off_is_never_judged_better(file):
    """Whatever is missing from its end, a bond that is only failover never comes out as one that aggregates."""
    text = file.read_text()
    for end in range(len(text)):
        try:
            found = bonding.judge(bonding.parse(text[:end]))
        except Unreadable as error:
            assert (
                "cut off" in str(error)
                or "names no bonding mode" in str(error)
                or "is unknown" in str(error)
            )
        else:
            assert not (found.aggregates and not JUDGED[file.stem][0])


def test_lacp_needs_a_partner_on_several_ports():
    """Partner and aggregators together decide: none, all apart, one alone in the active one, two of three, all."""
    assert bonding.judge(bond(1, 1, partner="00:00:00:00:00:00")).aggregates is False
    assert bonding.judge(bond(1, 2)).aggregates is False
    assert bonding.judge(bond(1, 2, 2)).aggregates is False
    assert "with 2 of its 3 slaves" in bonding.judge(bond(1, 1, 2)).reason
    assert bonding.judge(bond(1, 1)).aggregates is True
    assert bonding.judge(bond(1, 1, partner=None, active=None)).aggregates is None


def test_a_machines_bonds_are_listed(tmp_path):
    """Every bond by its name with its judgement; one that cannot be read says why; none is an empty list."""
    assert bonding.here(tmp_path / "none") == {}
    (tmp_path / "bond0").write_text((FOLDER / "active-backup.txt").read_text())
    (tmp_path / "bond1").write_text("")
    found = bonding.here(tmp_path)
    assert found["bond0"]["aggregates"] is False and found["bond0"]["slaves"][0]["name"] == "em3"
    assert found["bond1"] == {
        "unreadable": "not a file of /proc/net/bonding: it names no bonding mode"
    }
