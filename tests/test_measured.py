"""What was measured elsewhere is consistent, and carries its source."""

import pytest

from analysis.dataset import measured
from analysis.statements import exhibit
from runners.records.record import FalloffError

CLUSTERS, HPL, PING_PONG = measured.clusters(), measured.hpl(), measured.ping_pong()


def test_each_point_fills_its_grid_and_nodes():
    assert (HPL.P * HPL.Q == HPL.ranks).all()
    assert (HPL.nodes * HPL.ranks_per_node == HPL.ranks).all()
    assert HPL.ranks_per_node.gt(0).all() and (HPL.rate_median <= HPL.rate_best).all()
    assert not HPL[["N", "NB", "P", "Q", "rate_median"]].isna().any(axis=None)


def test_no_rate_is_above_the_peak_of_its_nodes():
    peak = HPL.cluster.map({name: one["node"]["peak_gflop_s"] for name, one in CLUSTERS.items()})
    assert (HPL.rate_best < HPL.nodes * peak).all()


def test_the_roles_are_disjoint():
    """What a law is fitted to is not what it foretells; repeats are one row."""
    setting = [*HPL.columns[HPL.columns.get_loc("nodes") : HPL.columns.get_loc("runs")]]
    assert set(HPL.role) == {"given", "held_out", "other"}
    assert not HPL.duplicated(["cluster", "series", *setting]).any()
    assert (
        HPL.groupby(["cluster", *setting], dropna=False)
        .role.agg(lambda roles: not {"given", "held_out"} <= set(roles))
        .all()
    )


def test_no_row_is_of_the_throttled_dahu():
    """With four nodes throttled 500,000 gave 22,050 Gflop/s, and 50,000 12,790."""
    sizes = HPL[(HPL.cluster == "dahu") & (HPL.series == "sizes")].set_index("N").rate_median
    assert sizes[500_000] > 25_000 and sizes[50_000] > 13_300 and sizes.is_monotonic_increasing


@pytest.mark.parametrize("curve", sorted(set(PING_PONG.curve)))
def test_times_grow_with_the_message(curve):
    """From 1 KiB on; four times the bytes, because TCP's short messages scatter."""
    times = PING_PONG[PING_PONG.curve == curve].set_index("message_bytes").time_us
    assert times.index.is_monotonic_increasing and 2 <= len(times) <= 40 and (times > 0).all()
    for size, time in times[times.index >= 1024].items():
        assert (times[times.index >= 4 * size] >= 0.8 * time).all(), size


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_description_is_whole(name):
    cluster = CLUSTERS[name]
    assert cluster["ping_pong"] in set(PING_PONG.curve) and cluster["unknown"]
    mine = PING_PONG[PING_PONG.curve == cluster["ping_pong"]].iloc[0]
    assert (mine.family, mine.cluster) == (cluster["family"], name)
    rate = cluster["node"]["rate"]
    assert rate["from"] in ("HPL on one node", "DGEMM") and rate["unit"] == "Gflop/s"
    assert rate["value"] < cluster["node"]["peak_gflop_s"]
    assert cluster["hpl"]["process_mapping"] == "row-major" and cluster["hpl"]["mapping_from"]
    assert all(source["commit"] and source["licence"] for source in cluster["source"])
    assert (HPL.cluster == name).any() != (name == "csd3")


def test_every_curve_has_a_source():
    about = ["repository", "commit", "licence", "cluster", "statistic"]
    assert not PING_PONG[about].isna().any(axis=None)


def test_figures_draw_one_curve_of_a_family():
    drawn = PING_PONG.dropna(subset="short").drop_duplicates("curve")
    assert drawn.family.is_unique
    assert set(drawn.family) == {*PING_PONG.family} - {"cloud_tcp", "inside"}


def test_the_curves_are_not_mixed_up():
    """1 MiB over the same cards takes 200 us by Intel MPI's verbs, and 92 us by UCX; the bandwidths
    are those that the sources' own tables have."""
    by_size = PING_PONG.set_index(["curve", "message_bytes"]).time_us
    for curve, mebibyte_us in (("alaska_verbs", 200.2), ("alaska_ib", 91.9), ("csd3_roce", 187.1)):
        assert by_size[curve, 2**20] == pytest.approx(mebibyte_us, rel=0.005)
    longest = PING_PONG.groupby("curve").last()
    rates = longest.message_bytes / longest.time_us
    for curve, mb_s in (("pi4", 113.2), ("paravance", 792), ("dahu", 12244), ("azure_ib", 23715)):
        assert rates[curve] == pytest.approx(mb_s, rel=0.05)


def test_what_stands_alone_has_no_interval():
    """A table of it needs neither n nor interval, unlike one of runs of ours."""
    assert not exhibit.Basis(exhibit.ELSEWHERE).n
    with pytest.raises(FalloffError):
        exhibit.Basis("measured")
