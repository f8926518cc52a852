"""Interconnects belong to families by the list's own column and by whole words: no 10G is an Ethernet by accident."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import paths, style
from analysis.top500.families import MIXED, NOT_STATED, OTHER, Kind, by_name, families, generation, kind


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Gigabit Ethernet", "gige"),
        ("GigEthernet", "gige"),
        ("10G Ethernet", "10gige"),
        ("10 Gigabit Ethernet", "10gige"),
        ("10-Gigabit Ethernet", "10gige"),
        ("10GE", "10gige"),
        ("Myrinet 10G", "myrinet"),
        ("Myri-10G", "myrinet"),
        ("Infiniband 10G", "infiniband"),
        ("10G", ""),
        ("40G Ethernet", "faster_ethernet"),
        ("100 Gigabit Ethernet", "faster_ethernet"),
        ("25GbE", "faster_ethernet"),
        ("Fast Ethernet", "fast_ethernet"),
        ("Ethernet", ""),
        ("Infinband DDR 4x", "infiniband"),
        ("Dual-rail Mellanox EDR Infiniband", "infiniband"),
        ("Mellanox HDR100", "infiniband"),
        ("Intel Omni-Path", "omni_path"),
        ("Numalink/Infiniband", MIXED),
        ("Gigabit Ethernet/Myrinet", MIXED),
        ("XT4 Internal Interconnect", "cray"),
        ("Aries interconnect ", "cray"),
        ("Slingshot-11", "slingshot"),
        ("Federation", "sp_switch"),
        ("NUMAlink", "numalink"),
        ("Multi-stage crossbar", "crossbar"),
        ("Tofu interconnect D", "custom"),
        ("TH Express-2", "custom"),
        ("Bull BXI 1.2", "custom"),
        ("Quadrics", "quadrics"),
        ("Fibre", ""),
        ("Gigeresque Ibex", ""),
    ],
)
def test_names_of_the_lists(name, family):
    """Whole words decide, the longest phrase counts, and what is ambiguous belongs to none."""
    assert by_name(name) == family


@pytest.mark.parametrize(
    ("listed", "name", "found"),
    [
        ("10G", "10G Ethernet", Kind("10gige")),
        ("10G", "Myrinet 10G", Kind("10gige", "myrinet")),
        ("Myrinet", "Myrinet 10G", Kind("myrinet")),
        ("", "Myrinet 10G", Kind("myrinet")),
        ("", "10G", Kind(OTHER)),
        ("Gigabit Ethernet", "Slingshot-11", Kind("gige", "slingshot")),
        ("Gigabit Ethernet", "100G Ethernet", Kind("gige", "faster_ethernet")),
        ("Infiniband", "Infinband DDR 4x", Kind("infiniband")),
        ("Proprietary", "XT4 Internal Interconnect", Kind("custom")),
        ("Custom Interconnect", "Aries interconnect ", Kind("custom")),
        ("Cray Interconnect", "XT3 Internal Interconnect", Kind("cray")),
        ("Mixed", "Numalink/Infiniband", Kind("mixed")),
        ("Omnipath", "Intel Omni-Path", Kind("omni_path")),
        ("N/A", "N/A", Kind(NOT_STATED)),
        ("", "", Kind(NOT_STATED)),
        ("N/A", "2-D mesh (torus)", Kind("custom")),
        ("Wormhole", "Wormhole 3", Kind(OTHER)),
        ("Wormhole", "Gigabit Ethernet", Kind("gige")),
    ],
)
def test_the_lists_own_family_counts(listed, name, found):
    """The name is the check of the listed family, and decides where the list has none that is known."""
    assert kind(listed, name) == found


def test_the_file_contradicts_itself_nowhere():
    """No phrase and no listed value belongs to two families; each family has a title and a look of its own."""
    tables = tomllib.loads(paths.FAMILIES.read_text(encoding="utf-8"))
    for column in ("phrases", "listed"):
        all_of_them = [text for table in tables.values() for text in table[column]]
        assert len(all_of_them) == len(set(all_of_them)) == len(getattr(families(), column))
        assert all(text == text.lower().strip() for text in all_of_them)
    assert set(families().titles) <= style.LOOKS.keys()
    assert all(other in tables for table in tables.values() for other in table.get("under", ()))


@given(st.sampled_from(sorted(families().phrases)), st.sampled_from(["", "Dual-rail", "Voltaire", "4x"]), st.booleans())
def test_a_phrase_is_found_wherever_it_stands(phrase, beside, first):
    """Upper or lower case, with another word before or after it, glued by whatever is no letter."""
    name = " ".join(phrase).title()
    family = families().phrases[phrase]
    assert by_name(f"{beside} {name}" if first else f"{name}-{beside}") == family


@given(st.text(max_size=20), st.text(max_size=20))
def test_every_text_has_one_family(listed, name):
    """Whatever a list prints, there is a title for its family."""
    assert kind(listed, name).family in families().titles


@pytest.mark.parametrize(
    ("name", "rate"),
    [("Infiniband DDR", "DDR"), ("Infinband DDR 4x", "DDR"), ("Infiniband", ""), ("Infiniband SDR/DDR", ""), ("HDR100", "HDR100")],
)
def test_data_rates_by_name(name, rate):
    """A name with two data rates is of neither."""
    assert generation(name) == rate
