"""Refuse to build a wheel: notebooks, campaigns and reference data are files of a checkout, which
its user edits."""

import sys

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CheckoutOnly(BuildHookInterface):
    """Allow only the editable installation that `make setup` makes."""

    def initialize(self, version: str, build_data: dict) -> None:
        """End the build of a wheel with the reason and the remedy."""
        if version != "editable":
            sys.exit(
                "Falloff has no wheel: it is run from a checkout, whose notebooks, campaigns and data you edit. "
                "Clone the repository and run `make setup` there."
            )
