"""`python -m tramai`: the same as `tramai`."""

from .cli.entry import main

if __name__ == "__main__":
    main()
