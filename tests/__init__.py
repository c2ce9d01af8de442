"""The tests. The package of `tests/plugins/example` is found in their processes as if it were installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "plugins" / "example"))
