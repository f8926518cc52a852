"""Install a checkout for editing, and refuse to build a wheel: notebooks, campaigns and reference
data are files of the checkout, which its user edits."""

import os
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CheckoutOnly(BuildHookInterface):
    """Allow only the editable installation that `make setup` makes."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Write the .pth file that finds the checkout; end the build of a wheel with the reason and
        the remedy.

        Python reads such a file in the locale's encoding before anything else, so its path is
        written in ASCII.
        """
        if version != "editable":
            sys.exit(
                "Falloff has no wheel: it is run from a checkout, whose notebooks, campaigns and "
                "data you edit. Clone the repository and run `make setup` there."
            )
        finder = Path(self.directory, "falloff.pth")
        finder.parent.mkdir(parents=True, exist_ok=True)
        path = os.fsencode(self.root)
        finder.write_text(f"import os, site; site.addsitedir(os.fsdecode({path!r}))\n", "ascii")
        build_data["force_include_editable"][str(finder)] = finder.name
