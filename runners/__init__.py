"""Drive benchmark tools and keep exactly what they said.

Standard library only and Python 3.9, so that this folder can be copied to a head node.
"""

import importlib

from runners.record import FalloffError, Runner


def runner_named(name: str) -> Runner:
    """The runner in the module of that name; raises FalloffError when there is none."""
    try:
        return importlib.import_module(f"{__name__}.{name}").RUNNER
    except (ModuleNotFoundError, AttributeError):
        raise FalloffError(
            f"there is no runner {name!r}: runners/{name}.py should define RUNNER"
        ) from None
