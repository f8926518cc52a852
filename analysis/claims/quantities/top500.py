"""What TOP500's lists say to the sources' numbers of them: every reading of the words, from lists that are there."""

from analysis.claims.sample import Found, Printed
from analysis.experiments import Studies


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
    lists = [] if studies.top500 is None else studies.top500.lists
    month = next((it.month for it in _aggregates(studies) if it.id == "gige_share"), None)
    shares = {own.family: own.shares["share of systems"] for it in lists if it.month == month for own in it.families}
    others = [share for family, share in shares.items() if family != "gige"]
    lead = shares.get("gige", 0.0) - max(others, default=0.0)
    return [Printed({"share of systems": lead})] if shares else []


def ddr_above_threshold(studies: Studies) -> list[Found]:
    """How many vendors, or sites, have systems on DDR InfiniBand that are all above the efficiency of the claim."""
    return _printed(studies, "ddr_above_threshold")


def _printed(studies: Studies, name: str) -> list[Found]:
    """The readings of a printed number; nothing where its list is not there."""
    return [Printed(it.readings, it.rounding) for it in _aggregates(studies) if it.id == name and it.readings]


def _aggregates(studies: Studies):
    return () if studies.top500 is None else studies.top500.aggregates
