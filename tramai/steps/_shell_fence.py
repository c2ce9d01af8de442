"""What a shell step is started in beyond its environment: a sandbox, limits of resources, values in files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..codec import Json, encode
from ..running import Context
from ..step import StepError
from . import _shell_limits, _shell_sandbox
from ._spawn import encode as as_bytes
from ._spawn import find_program
from ._watchdog import ensure_watchdog

if TYPE_CHECKING:
    from ._process import Finished
    from .shell import Shell


class Fence:
    """Made before the child is started, and closed after the last of its processes. `env` gets what the child is to
    know of it."""

    def __init__(self, step: Shell, ctx: Context, program: str, env: dict[str, str], cwd: str) -> None:
        self.guarded = bool(step.sandbox)
        self.front: Sequence[str] = ()
        self._folder = ""
        try:
            if step.files:
                self._folder = _hand_over({name: ctx.value(value) for name, value in step.files.items()}, env)
            if step.sandbox is not None and not isinstance(step.sandbox, bool):
                file = find_program(program, env=env, cwd=cwd)
                self.front = _shell_sandbox.front(step.sandbox, ctx, file, env, cwd, self._folder)
            if step.resources is not None:
                self.front = [*self.front, *_shell_limits.front(step.resources)]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the files that were handed over."""
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)
            try:
                os.rmdir(os.path.dirname(self._folder))
            except OSError:
                pass  # another step has files there


def _hand_over(values: dict[str, Any], env: dict[str, str]) -> str:
    """Write each value into a file of its own; their folder.

    The watchdog knows the folder around it, and removes it when this process is killed.
    """
    above = ensure_watchdog().folder
    folder = os.path.join(above, os.urandom(8).hex())
    try:
        os.makedirs(folder, mode=0o700)
        os.chmod(above, 0o700)  # `makedirs` gives the mode to the last folder only
        for name, value in values.items():
            path = os.path.join(folder, name)
            text = value if isinstance(value, str) else encode(value)
            data = as_bytes(f"the value of {name}", text, nul=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            env[name] = path
    except OSError as error:
        _remove(folder)
        raise StepError("limit", f"the values of `files` cannot be written to {above}: {error.strerror}") from error
    except StepError:
        _remove(folder)
        raise
    return folder


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def explained(step: Shell, finished: Finished, how: str, details: dict[str, Json]) -> StepError:
    """The error of a child that failed in a sandbox or under limits, as far as these may be the reason."""
    if step.sandbox and (said := _shell_sandbox.not_made(finished)):
        return StepError("refused", f"the sandbox cannot be made: {said}", details=details)
    if step.resources is not None and (said := _shell_limits.not_set(finished)):
        return StepError("refused", f"the limits of `resources` cannot be set: {said}", details=details)
    if step.resources is not None and (found := _shell_limits.exceeded(step.resources, finished, how)):
        kind, message, hint = found
        return StepError(kind or f"exit.{finished.exit_code}", message, hint=hint, details=details)
    return StepError(f"exit.{finished.exit_code}", how, details=details)
