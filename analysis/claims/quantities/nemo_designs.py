"""The slowdowns that the Nemo page's belief about oversubscription is about, from its own designs."""

import numpy as np

from analysis.claims.sample import Found, sample
from analysis.experiments import Studies
from analysis.experiments.topology import HPL


def slowdown_of_neighbours(studies: Studies) -> list[Found]:
    """Slowdown of exchanges with the nearest neighbours."""
    return _slowdown(studies, "nearest_neighbour")


def slowdown_of_permutation(studies: Studies) -> list[Found]:
    """Slowdown of random permutations."""
    return _slowdown(studies, "permutation")


def slowdown_of_all_to_all(studies: Studies) -> list[Found]:
    """Slowdown of all to all."""
    return _slowdown(studies, "all_to_all")


def slowdown_of_many_to_one(studies: Studies) -> list[Found]:
    """Slowdown of many to one."""
    return _slowdown(studies, "many_to_one")


def slowdown_of_hpl(studies: Studies) -> list[Found]:
    """Slowdown of HPL as a whole, computing included."""
    return _slowdown(studies, HPL)


def _slowdown(studies: Studies, pattern: str) -> list[Found]:
    """The slowdown of every simulated run on each of the source's own designs, neighbours in order and shuffled."""
    study = studies.topology
    if study is None:
        return []
    of_pattern = [judged for judged in study.judgements if judged.pattern == pattern]
    own = [judged for judged in of_pattern if judged.interconnect in study.proposed]
    if not own:
        return []
    text = f"slowdown on {own[0].nodes} nodes, the source's own designs, neighbours in order and shuffled"
    if pattern == HPL:
        return [sample(study.hpl, [judged.slowdown for judged in own], text, "run")]
    designs = list(dict.fromkeys(judged.interconnect for judged in own))
    values = study.slowdowns.sel(pattern=pattern, interconnect=designs, nodes=own[0].nodes)
    return [sample(study.dataset, np.ravel(values), text, "run")]
