"""`tramai config`: what the command line is set to."""

from __future__ import annotations

from ._config_show import show
from ._group import noun

TEXT = """Look at the settings that hold here, and at where each comes from.

A flag wins over a variable (TRAMAI_STORE), that over the project's file
(tramai.toml, or [tool.tramai] of pyproject.toml), that over your own, and
that over the default.

Exit status: that of the verb; 2 for none.
"""

command = noun("config", TEXT, (show,), "tramai config show", "tramai config show --origin")
