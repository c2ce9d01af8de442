"""Two ways to drive one interpreter: straight on, or over an event loop.

A coroutine that never really waits needs no event loop: a run without anything side by side is driven by one
`send`, and its blocking work happens in place. That keeps `asyncio` (the dearest import of all) out of short runs.
"""

from __future__ import annotations

import select
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .errors import BugError
from .interrupt import Interrupt

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Interrupted(Exception):
    """The run was asked to stop, for `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Driver(Protocol):
    """How coroutines are run, and how they wait."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end."""
        ...

    async def gather(
        self,
        jobs: Sequence[Callable[[], Awaitable[Any]]],
        *,
        window: int,
        ends: Callable[[Exception], bool],
        caught: tuple[type, ...],
    ) -> list[Any]:
        """Run jobs, at most `window` at once; exceptions of the types `caught` become results.

        `ends` says of such an exception whether it is the end of the other jobs too.
        """
        ...

    async def blocking(self, work: Callable[[], T], stop: Interrupt, grace: float) -> T:
        """Run blocking code; on cancellation `stop` is set and the code's end awaited for `grace` seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; Interrupted when the run must stop."""
        ...

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """Await at most this long; TimeoutError."""
        ...


class Straight:
    """No event loop: everything in order, in this thread."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """One `send` is the whole run."""
        try:
            work.send(None)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        work.close()
        raise BugError(what="a run without an event loop tried to wait for one")

    async def gather(
        self,
        jobs: Sequence[Callable[[], Awaitable[Any]]],
        *,
        window: int,
        ends: Callable[[Exception], bool],
        caught: tuple[type, ...],
    ) -> list[Any]:
        """One after another: only pure blocks come here, and loops."""
        results: list[Any] = [None] * len(jobs)
        for index, job in enumerate(jobs):
            try:
                results[index] = await job()
            except caught as error:  # type: ignore[misc]
                results[index] = error
                if ends(error):
                    break
        return results

    async def blocking(self, work: Callable[[], T], stop: Interrupt, grace: float) -> T:
        """In place."""
        return work()

    async def sleep(self, seconds: float) -> None:
        """Wait on the interrupt."""
        poller = select.poll()
        poller.register(self._interrupt.fileno(), select.POLLIN)
        while seconds > 0:
            if poller.poll(min(seconds, 3600.0) * 1000):
                raise Interrupted(self._interrupt.reason or "signal")
            seconds -= 3600.0
        if self._interrupt.is_set:
            raise Interrupted(self._interrupt.reason or "signal")

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """Never asked of a straight run: the plan sees to it."""
        raise BugError(what="a run without an event loop was given a time limit over a block")


class Loop:
    """An asyncio loop in this thread; blocking code goes to threads of its own."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on a fresh loop; an interrupt cancels the whole walk."""
        import asyncio

        async def main() -> T:
            task = asyncio.ensure_future(work)
            loop = asyncio.get_running_loop()

            def stop() -> None:
                loop.call_soon_threadsafe(task.cancel)

            self._interrupt.on_set(stop)
            try:
                return await task
            except asyncio.CancelledError:
                if self._interrupt.is_set:
                    raise Interrupted(self._interrupt.reason or "signal") from None
                here = asyncio.current_task()
                if here is not None and not here.cancelling():
                    raise BugError(what="a run was cancelled from inside, and nobody had asked for it") from None
                raise
            finally:
                self._interrupt.clear_callbacks()

        with asyncio.Runner() as runner:
            return runner.run(main())

    async def gather(
        self,
        jobs: Sequence[Callable[[], Awaitable[Any]]],
        *,
        window: int,
        ends: Callable[[Exception], bool],
        caught: tuple[type, ...],
    ) -> list[Any]:
        """A few tasks drain one list of jobs, so that ten thousand items never mean ten thousand tasks."""
        import asyncio

        results: list[Any] = [None] * len(jobs)
        queue = iter(enumerate(jobs))
        drainers: list[asyncio.Task[None]] = []

        async def drain() -> None:
            for index, job in queue:
                try:
                    results[index] = await job()
                except caught as error:  # type: ignore[misc]
                    results[index] = error
                    if ends(error):
                        for drainer in drainers:
                            if drainer is not asyncio.current_task():
                                drainer.cancel()
                        return

        try:
            async with asyncio.TaskGroup() as group:
                drainers.extend(group.create_task(drain()) for _ in range(min(window, len(jobs))))
        except BaseExceptionGroup as failed:
            raise _first(failed) from None
        return results

    async def blocking(self, work: Callable[[], T], stop: Interrupt, grace: float) -> T:
        """On a thread of its own: a pool would make the window of a fan-out depend on the pool's size."""
        import asyncio
        import contextlib
        import threading

        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()

        def deliver(settle: Callable[[Any], None], value: Any) -> None:
            if not ended.done():
                settle(value)

        def body() -> None:
            settle: Callable[[Any], None] = ended.set_result
            value: Any
            try:
                value = work()
            except StopIteration as error:  # no future takes it, and then nobody would ever be told
                settle, value = ended.set_exception, RuntimeError("the work raised StopIteration")
                value.__cause__ = error
            except BaseException as error:  # noqa: BLE001 - carried over to the waiting task, whatever it is
                settle, value = ended.set_exception, error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(deliver, settle, value)

        threading.Thread(target=body, name="tramai-step", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            stop.set(self._interrupt.reason or "sibling_failed")
            await asyncio.wait((ended,), timeout=grace)
            if ended.done() and not ended.cancelled():
                ended.exception()  # looked at, so that asyncio does not complain
            raise

    async def sleep(self, seconds: float) -> None:
        """Cancelled with the walk."""
        import asyncio

        await asyncio.sleep(seconds)

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """A timeout around a whole block."""
        import asyncio

        async with asyncio.timeout(seconds):
            return await work


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
