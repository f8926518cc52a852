"""What TOP500's lists say to the sources' numbers of them: every reading of the words, from lists that are there."""

from collections.abc import Sequence

from analysis.claims.sample import Found, Printed
from analysis.experiments import Studies
from analysis.experiments.top500 import Aggregate


def gige_best_ranked(studies: Studies) -> list[Found]:
    """Efficiency [1] of the best-ranked system on Gigabit Ethernet."""
    return _printed(studies, "gige_best_ranked")


def gige_best_rank(studies: Studies) -> list[Found]:
    """The rank of that system."""
    return _printed(studies, "gige_best_rank")


def gige_average(studies: Studies) -> list[Found]:
    """Average efficiency [1] of the systems on Gigabit Ethernet, in each sense of average."""
    return _printed(studies, "gige_average")


def gige_highest(studies: Studies) -> list[Found]:
    """The highest efficiency [1] of a system on Gigabit Ethernet."""
    return _printed(studies, "gige_highest")


def gige_lowest(studies: Studies) -> list[Found]:
    """The lowest efficiency [1] of a system on Gigabit Ethernet."""
    return _printed(studies, "gige_lowest")


def gige_lowest_cores(studies: Studies) -> list[Found]:
    """The cores of that system."""
    return _printed(studies, "gige_lowest_cores")


def gige_share(studies: Studies) -> list[Found]:
    """What part [1] of the list is on Gigabit Ethernet: of its systems, of Rmax and of Rpeak."""
    return _printed(studies, "gige_share")


def gige_lead(studies: Studies) -> list[Found]:
    """By how much [1] the share of systems on Gigabit Ethernet exceeds that of the next family, in the same list."""
    months = [printed.month for printed in _aggregates(studies) if printed.id == "gige_share"]
    systems = studies.top500.systems if studies.top500 else None
    shares = (
        {}
        if systems is None
        else systems[systems.list.isin(months)].family.value_counts(normalize=True).to_dict()
    )
    if not shares:
        return []
    own = shares.pop("gige", 0.0)
    return [Printed({"share of systems": own - max(shares.values(), default=0.0)})]


def ddr_above_threshold(studies: Studies) -> list[Found]:
    """How many vendors, or sites, have systems on DDR InfiniBand that are all above the efficiency of the claim."""
    return _printed(studies, "ddr_above_threshold")


def _printed(studies: Studies, name: str) -> list[Found]:
    """The readings of a printed number; nothing where its list is not there."""
    found = [printed for printed in _aggregates(studies) if printed.id == name]
    return [Printed(printed.readings, printed.rounding) for printed in found if printed.readings]


def _aggregates(studies: Studies) -> Sequence[Aggregate]:
    return studies.top500.aggregates if studies.top500 else ()
