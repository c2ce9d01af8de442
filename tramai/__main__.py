"""`python -m tramai`: the same as `tramai`."""

import sys

from .cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
