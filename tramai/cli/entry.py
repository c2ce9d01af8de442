"""The `tramai` command: `--help` and `--version` answered at once, everything else by the modules that know."""

import os
import sys


def main() -> None:
    """Run the command line and leave the process with its exit status."""
    status = answer(sys.argv[1:])
    if "coverage" in sys.modules:
        sys.exit(status)
    # Everything is saved, closed and flushed. Taking the interpreter apart would cost a fifth of a short run.
    os._exit(status)


def answer(arguments: list[str]) -> int:
    """Do what the words after `tramai` say; the exit status."""
    _fill_gaps()
    if arguments in ([], ["-h"], ["--help"]) and "_TRAMAI_COMPLETE" not in os.environ:
        return _print(_help())
    if arguments == ["--version"]:
        from tramai import __version__

        return _print(f"tramai {__version__}\n")
    _hasten()
    if "_TRAMAI_COMPLETE" in os.environ:
        from ._complete import answer as complete

        return complete(os.environ)
    from ._errors import guarded

    return guarded(arguments)


def _fill_gaps() -> None:
    """Put nothing where a standard stream is closed: the next file that is opened would become that stream."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w" if number else "r", encoding="utf-8")  # noqa: SIM115 - for as long as we live
            setattr(sys, name, stream)


def _help() -> str:
    # Built from the commands by `python -m tramai.cli._helptext`; a test keeps it equal to what click would print.
    with open(__file__[: -len("entry.py")] + "help.txt", encoding="utf-8") as file:
        return file.read()


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        return 141
    return 0


def _hasten() -> None:
    """Spare a short run what it has no use for: fifty garbage collections, and a module of backports."""
    import gc

    gc.set_threshold(50_000, 10, 10)
    if "typing_extensions" not in sys.modules:
        # msgspec takes from it, where it happens to be installed, what `typing` has had since Python 3.11.
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        import msgspec  # noqa: F401

        del sys.modules["typing_extensions"]
