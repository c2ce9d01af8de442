"""The `tramai` command: `--help` and `--version` answered at once, everything else by the modules that know."""

import os
import sys


def main() -> int:
    """Run the command line; the exit status."""
    arguments = sys.argv[1:]
    if arguments in ([], ["-h"], ["--help"]) and "_TRAMAI_COMPLETE" not in os.environ:
        return _print_help()
    if arguments == ["--version"]:
        from tramai import __version__

        sys.stdout.write(f"tramai {__version__}\n")
        return 0
    from ._errors import guarded

    return guarded(arguments)


def _print_help() -> int:
    # Built from the commands by `python -m tramai.cli._helptext`; a test keeps it equal to what click would print.
    with open(__file__[: -len("entry.py")] + "help.txt", encoding="utf-8") as file:
        text = file.read()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        from ._terminal import silence

        silence(sys.stdout)
    return 0
