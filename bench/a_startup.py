"""A. Start-up: what a command costs before it does anything, against an interpreter that does nothing.

python3 bench/a_startup.py [rounds=25]
"""

from lib import Report, have, in_turn, median, peak, program, ratio, rounds_wanted, timed, workplace

BASE = "python -c pass"


def main() -> None:
    report = Report("a_startup", "A. Start-up: CPU against `python -c pass`")
    python, tramai = program("tramai"), program("tramai", "tramai")
    contenders = {
        BASE: [python, "-c", "pass"],
        "tramai --version": [tramai, "--version"],
        "tramai --help": [tramai, "--help"],
        "tramai run --help": [tramai, "run", "--help"],
        "tramai list": [tramai, "list"],
        "python -c 'import re'": [python, "-c", "import re"],
        "python -c 'import click'": [python, "-c", "import click"],
    }
    peers = {"gotask": ("task", "--help"), "doit": ("doit", "--help"), "yaml-workflow": ("yaml-workflow", "--help")}
    for peer, (name, *arguments) in peers.items():
        if have(peer):
            contenders[f"{name} --help"] = [program(peer, name), *arguments]
    with workplace(disk=False) as folder:
        for argv in contenders.values():
            timed(argv, folder)  # byte code and files are in memory from here on
        found = in_turn(rounds_wanted(25), contenders, lambda argv: timed(argv, folder))
        peaks = {label: peak(contenders[label], folder) for label in found}
    times = {label: ratio(samples, found[BASE]) for label, samples in found.items()}
    report.table(
        ["contender", "cpu ms", "x pass", "peak MiB"],
        [(label, median(samples) * 1e3, times[label], peaks[label]) for label, samples in found.items()],
    )
    report.goals([(f"{label}, CPU", 4.0, 2.0, times[label]) for label in ("tramai --help", "tramai --version")])


if __name__ == "__main__":
    main()
