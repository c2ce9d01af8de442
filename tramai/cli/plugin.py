"""`tramai plugin`: what other packages bring."""

from __future__ import annotations

from ._group import noun
from ._plugin_list import list_

TEXT = """Look at what installed packages bring: step types, model providers, stores and
observers.

Exit status: that of the verb; 2 for none.
"""

command = noun("plugin", TEXT, (list_,), "tramai plugin list", "tramai plugin list --json")
