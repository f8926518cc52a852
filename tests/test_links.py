"""The testbed's survey of its own links."""

import numpy as np
import pytest
from synthetic import campaign

from analysis.links import links, networks


def test_a_link_that_reaches_its_wire_limit_is_link_bound():
    """What older campaigns measured inside a CPU quota says nothing of the link."""
    dataset = campaign(blocks=1)
    table = links(dataset)
    assert len(table) == 3 * 8
    assert set(table.loc["gige"].limit) == set(table.loc["10gige"].limit) == {"link-bound"}
    assert links(dataset.assign_coords(in_quota=dataset.in_quota.fillna(1.0))).empty


def test_an_unshaped_link_is_host_bound():
    """Without a wire limit the host is what limits."""
    table = links(campaign(blocks=1)).loc["unshaped"]
    assert table.wire_limit.isna().all() and set(table.limit) == {"host-bound"}


def test_one_slow_link_makes_its_network_host_bound():
    """A network is link-bound only when all of its links are; an unmeasured link says nothing."""
    dataset = campaign(blocks=1)
    of_link = (dataset.interconnect == "10gige") & (dataset.runner == "iperf3")
    of_link &= dataset.sender == 3
    slow, lost = (
        dataset.assign(goodput=dataset.goodput.where(~of_link, goodput))
        for goodput in (9.0e9, np.nan)
    )
    assert links(slow).loc[("10gige", 3, 4)].limit == "host-bound"
    assert links(slow).loc[("10gige", 4, 5)].limit == "link-bound"
    assert networks(slow).limit["10gige"] == "host-bound"
    assert links(lost).loc[("10gige", 3, 4)].limit == ""
    assert networks(lost).limit["10gige"] == "link-bound"


def test_networks_are_in_the_campaigns_order():
    """Medians over their links."""
    table = networks(campaign(blocks=1))
    assert table.index.tolist() == ["gige", "10gige", "unshaped"]
    assert table.goodput["10gige"] == pytest.approx(9.2e9)


def test_a_campaign_without_a_survey_has_no_links():
    """Nothing measured is an empty table, not a fault."""
    dataset = campaign(blocks=1)
    bare = dataset.isel(trial=dataset.role != "survey")
    assert links(bare).empty and networks(bare).empty
