"""Numbers that are counted, and how they are written down for Prometheus: its text format, version 0.0.4."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "(other)"
"""The value of a label for everything beyond as many values as it may have."""
MOST = 100
"""Different values that a label may have."""
SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)
"""The bounds of a histogram of durations."""

Labels = tuple[str, ...]


class Names:
    """The values of one label: the first hundred as they are, all others as one."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        """The value for a name."""
        if name not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(name)
        return name


class Metric:
    """One name with its samples. `kind`: `counter`, `gauge` or `histogram`."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = help
        self.labels = tuple(labels)
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def lines(self) -> Iterator[str]:
        """What is written down of it."""
        yield f"# HELP {self.name} {_escaped(self.help)}"
        yield f"# TYPE {self.name} {self.kind}"
        with self._lock:
            yield from list(self._samples())

    def _samples(self) -> Iterator[str]:
        for values in sorted(self._values):
            yield _line(self.name, zip(self.labels, values, strict=True), self._values[values])


class Counter(Metric):
    """Only grows."""

    def add(self, *values: str, by: float = 1) -> None:
        """Count something."""
        with self._lock:
            self._values[values] = self._values.get(values, 0.0) + by


class Gauge(Metric):
    """Is read when somebody asks for it: `read` gives the samples by the values of the labels."""

    kind = "gauge"

    def __init__(
        self, name: str, help: str, read: Callable[[], Mapping[Labels, float]], labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, help, labels)
        self._read = read

    def _samples(self) -> Iterator[str]:
        self._values = dict(self._read())
        return super()._samples()


class Histogram(Metric):
    """How many were at most so long, and how long all of them were together."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS) -> None:
        super().__init__(name, help, labels)
        self._bounds = (*bounds, float("inf"))
        self._counts: dict[Labels, list[int]] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count one of this size."""
        with self._lock:
            counts = self._counts.setdefault(values, [0] * len(self._bounds))
            counts[bisect.bisect_left(self._bounds, value)] += 1
            self._values[values] = self._values.get(values, 0.0) + value

    def _samples(self) -> Iterator[str]:
        for values in sorted(self._counts):
            labels, count = list(zip(self.labels, values, strict=True)), 0
            for bound, more in zip(self._bounds, self._counts[values], strict=True):
                count += more
                yield _line(f"{self.name}_bucket", [*labels, ("le", _number(bound))], count)
            yield _line(f"{self.name}_sum", labels, self._values[values])
            yield _line(f"{self.name}_count", labels, count)


def page(metrics: Sequence[Metric]) -> bytes:
    """All of them, as they are now."""
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines()).encode()


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    pairs = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels)
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text.encode("utf-8", "replace").decode()).replace('"', '\\"')
