"""The quantities that claims are about: a function each, `quantity(studies) -> list[Found]`, by the source's name.

It gives at most one finding for each kind of evidence, which is the dataset's own, so that a user's measured data are
judged as measured; nothing where the studies it needs are not there.
"""

from collections.abc import Callable

from analysis.claims.quantities import (
    beowulf,
    bonding_blog,
    grid5000,
    nemo,
    nemo_cpu,
    nemo_designs,
    smith,
    smith_benchmark,
    top500,
)
from analysis.claims.sample import Found
from analysis.experiments import Studies

MODULES = {
    "beowulf": beowulf,
    "bonding_blog": bonding_blog,
    "grid5000": grid5000,
    "nemo": nemo,
    "nemo_cpu": nemo_cpu,
    "nemo_designs": nemo_designs,
    "smith": smith,
    "smith_benchmark": smith_benchmark,
    "top500": top500,
}


def find(source: str, name: str) -> Callable[[Studies], list[Found]] | None:
    """The function of a claim: `name` of the source's module, or of another one where it is `module.name`."""
    module, _, function = name.rpartition(".")
    there = MODULES.get(module or source)
    found = getattr(there, function, None)
    own = callable(found) and found.__module__ == there.__name__ and not function.startswith("_")
    return found if own else None
