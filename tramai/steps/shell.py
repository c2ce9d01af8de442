"""`shell`: run a script or a program, and take what it writes."""

# No annotations from the future here: msgspec would have to compile their texts in every short run.

import os
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from .. import size
from ..codec import Json, encode
from ..duration import Duration
from ..expression import Text, Value
from ..permits import SHELLS
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Step, StepError

_RECORD = {
    "stdout": {"type": "string"},
    "stderr": {"type": "string"},
    "exit_code": {"type": "integer"},
    "truncated": {"type": "boolean"},
}


_Size = Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=size.PATTERN)]


class Sandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a child in a sandbox may do beyond nothing. Paths are relative to the folder in which the run was started;
    `~` is the user's home."""

    network: Annotated[bool, Meta(description="Whether the child has the network, the machine's own included.")] = False
    write: Annotated[
        tuple[Text, ...],
        Meta(
            description="Folders and files that may be changed: by default the one of the run.",
            examples=[["build"], []],
        ),
    ] = (Text("."),)
    read: Annotated[
        tuple[Text, ...],
        Meta(
            description="Folders and files that are seen although they are in the home or in /tmp.",
            examples=[["~/.cargo"]],
        ),
    ] = ()
    hide: Annotated[
        tuple[Text, ...], Meta(description="Folders and files that are not seen.", examples=[[".env", ".git"]])
    ] = ()


class Resources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each process of a step may use. The system enforces it, for every process by itself."""

    memory: Annotated[_Size | None, Meta(description="Address space.", examples=["512MiB"])] = None
    cpu: Annotated[
        Duration | None,
        Meta(description="Time of computing, in whole seconds; waiting is not counted.", examples=["30s"]),
    ] = None
    open_files: Annotated[
        Annotated[int, Meta(ge=8)] | None, Meta(description="Files, pipes and sockets open at once.", examples=[64])
    ] = None
    file_size: Annotated[_Size | None, Meta(description="Size of a file that is written.", examples=["1GiB"])] = None


class Shell(Step, frozen=True, kw_only=True):
    """Run a shell script (`run`) or a program (`argv`) and take its output. An exit status that is not in
    `ok_exit_codes` fails the step. The step is over when all processes that it started are gone."""

    scalar: ClassVar[str | None] = "run"
    straight: ClassVar[bool] = True
    spawns: ClassVar[bool] = True
    sinks: ClassVar[frozenset[str]] = frozenset({"env", "stdin", "files"})

    run_: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="A script for `bash -euo pipefail` (`sh -eu` where there is no bash). It is never templated: "
            "values enter by `env` or `stdin`.",
            examples=['make test TARGET="$TARGET"'],
        ),
    ] = msgspec.field(name="run", default=None)
    argv: Annotated[
        Annotated[tuple[Text, ...], Meta(min_length=1)] | None,
        Meta(
            description="A program and its arguments, without a shell.",
            examples=[["git", "show", "${{ inputs.commit }}"]],
        ),
    ] = None
    env: Annotated[dict[str, Text], Meta(description="Environment variables of the child.")] = {}
    cwd: Annotated[
        Text | None, Meta(description="Folder of the child, relative to the folder in which the run was started.")
    ] = None
    stdin: Annotated[
        Value | msgspec.UnsetType,
        Meta(description="What the child reads; what is not text is written as JSON. Empty by default."),
    ] = msgspec.UNSET
    files: Annotated[
        dict[str, Value],
        Meta(
            description="Values that are handed over as files: each variable is the path of a file that only the user "
            "can read, and that is gone after the step. What is not text is written as JSON.",
            examples=[{"CONFIG": "${{ inputs.config }}"}],
        ),
    ] = {}
    parse: Annotated[
        Literal["text", "json", "jsonl", "lines"] | None,
        Meta(description="Turn stdout into the value of the step."),
    ] = None
    ok_exit_codes: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=255)], ...],
        Meta(description="Exit statuses that are a success.", min_length=1),
    ] = (0,)
    max_output: Annotated[
        _Size,
        Meta(description="How much is kept of stdout and of stderr each: `1MiB` or a number of bytes."),
    ] = "1MiB"
    kill_after: Annotated[
        Duration, Meta(description="Time between SIGTERM and SIGKILL when the step has to be stopped.")
    ] = Duration(10.0)
    allow: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="The only programs that may be started: a name means what tramai's own PATH has by it, "
            "a path that file.",
            examples=[["git", "./gradlew"]],
        ),
    ] = None
    deny: Annotated[
        tuple[str, ...],
        Meta(description="Programs that may not be started, in whatever folder and under whatever name."),
    ] = ()

    sandbox: Annotated[
        bool | Sandbox | None,
        Meta(
            description="Run it in a sandbox (bubblewrap, on Linux): no network, no home, nothing written outside the "
            "folder of the run. A mapping says what it may do all the same.",
            examples=[True, {"network": True, "write": ["build"]}],
        ),
    ] = None
    resources: Annotated[
        Resources | None,
        Meta(
            description="The most that each process of the step may use.", examples=[{"memory": "512MiB", "cpu": "30s"}]
        ),
    ] = None

    def __post_init__(self) -> None:
        if isinstance(self.sandbox, bool):  # the short forms of a mapping without keys, and of nothing
            msgspec.structs.force_setattr(self, "sandbox", Sandbox() if self.sandbox else None)

    def check(self) -> tuple[Finding, ...]:
        """One of `run` and `argv`, no expression in a script, variables that can be set."""
        from ._shell_check import findings

        return tuple(findings(self))

    def output(self, result: Any) -> Json:
        """The parsed value, or what was written and the exit status."""
        if self.parse is not None:
            return result["value"]  # type: ignore[no-any-return]
        return {name: result[name] for name in ("stdout", "stderr", "exit_code")}

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """The program, or the shell for a script."""
        if self.argv is None:
            return (("shell", ("run",), SHELLS[0], True),)
        program = self.argv[0]
        return (("shell", ("argv", 0), program.text if program.constant else None),)

    def shape(self, known: Known) -> dict[str, Any] | None:
        """What `parse` makes, or the texts and the exit status."""
        if self.parse is not None:
            text = {"type": "string"}
            rows = {"type": "array", "items": text}
            made: dict[str, Any] = {"text": text, "lines": rows, "jsonl": {"type": "array"}, "json": {}}
            return made[self.parse]  # type: ignore[no-any-return]
        return {"type": "object", "properties": {name: _RECORD[name] for name in ("stdout", "stderr", "exit_code")}}

    def record(self, known: Known) -> dict[str, Any] | None:
        """What was written, how it ended, and the value with `parse`."""
        value = {"value": self.shape(known)} if self.parse is not None else {}
        return {"type": "object", "properties": {**_RECORD, **value}}

    async def run(self, ctx: Context) -> Outcome:
        """Render the settings, run the child, judge how it ended."""
        from . import _process
        from ._child_env import environment

        env = environment(ctx, {name: ctx.text(value) for name, value in self.env.items()})
        cwd = os.path.normpath(os.path.join(ctx.cwd, ctx.text(self.cwd))) if self.cwd is not None else ctx.cwd
        argv, names = self._line(ctx, env)
        stdin = _stdin(ctx.value(self.stdin)) if self.stdin is not msgspec.UNSET else None
        if self.allow is not None or self.deny or ctx.permits:
            from ._shell_guard import guard

            program = argv[0]
            argv[0] = _process.find_program(program, env=env, cwd=cwd)
            named = program if self.run_ is None else None
            guard(argv[0], named, ctx, allow=self.allow, deny=self.deny, cwd=cwd)
        limit = size.parse(self.max_output)
        ctx.signal("shell.started")
        fences: list[Any] = []
        try:
            if self.sandbox or self.resources or self.files:
                from ._shell_fence import Fence

                # Kept where it is made: who is cancelled meanwhile gets no result, and has files to remove.
                await ctx.blocking(lambda: fences.append(Fence(self, ctx, argv[0], env, cwd)))
            finished = await ctx.blocking(
                lambda: _process.run(
                    argv,
                    env=env,
                    cwd=cwd,
                    stdin=stdin,
                    interrupt=ctx.interrupt,
                    hurry=ctx.hurry,
                    deadline=ctx.deadline,
                    kill_after=self.kill_after,
                    cookie=_process.cookie(ctx.run_id, ctx.path, ctx.attempt),
                    max_output=limit,
                    log_path=ctx.log_path,
                    hidden=ctx.hidden,
                    on_output=ctx.output,
                    names=names,
                    fence=fences[0] if fences else None,
                ),
                grace=self.kill_after + _process.SETTLE + 2 * _process.PATIENCE,
            )
        finally:
            for fence in fences:
                fence.close()
        _tell(ctx, finished, limit)
        return Done(self._result(finished))

    def _line(self, ctx: Context, env: dict[str, str]) -> tuple[list[str], dict[int, str]]:
        """The arguments, and names for those that an error should not call by number."""
        if self.run_ is None:
            line = [ctx.text(item) for item in self.argv or ()]
            return line, {index: f"argv[{index}]" for index in range(len(line))}
        path = env.get("PATH", os.defpath)
        # A sandbox hides the home, and a bash that is installed there.
        front = shell(f"/bin:/usr/bin:{path}" if self.sandbox else path)
        return [*front, self.run_], {len(front): "the script in `run`"}

    def _result(self, finished: Any) -> Json:
        details = {"exit_code": finished.exit_code, "output": finished.tail}
        if finished.signal is not None:
            details["signal"] = finished.signal
        if finished.stuck:
            details["stuck"] = finished.stuck
        if finished.reason == "timeout":
            raise StepError("timeout", "the step ran out of time and was stopped", details=details)
        if finished.reason is not None:
            raise StepError("cancelled", f"stopped: {finished.reason}", details=details)
        if finished.signal is not None or finished.exit_code not in self.ok_exit_codes:
            how = f"ended by {finished.signal}" if finished.signal else f"exit status {finished.exit_code}"
            if self.sandbox or self.resources:
                from ._shell_fence import explained

                raise explained(self, finished, how, details)
            raise StepError(f"exit.{finished.exit_code}", how, details=details)
        result: dict[str, Json] = {
            "stdout": finished.stdout.text,
            "stderr": finished.stderr.text,
            "exit_code": finished.exit_code,
            "truncated": finished.stdout.truncated or finished.stderr.truncated,
        }
        if self.parse is not None:
            from ._shell_parse import parse

            result["value"] = parse(self.parse, finished.stdout, details, self.max_output)
        return result


def shell(path: str) -> list[str]:
    """The shell that runs scripts: bash where there is one, on the child's PATH or in its usual places."""
    from . import _process

    if bash := _process.search("bash", f"{path}:/bin:/usr/bin:/usr/local/bin"):
        return [bash, "-euo", "pipefail", "-c"]
    return [_process.search("sh", f"{path}:/bin:/usr/bin") or "sh", "-eu", "-c"]


def _tell(ctx: Context, finished: Any, limit: int) -> None:
    """Say how a child ended, in numbers."""
    if finished.reason == "timeout":
        ctx.signal("shell.timeout")
    streams = {"stdout": finished.stdout, "stderr": finished.stderr}
    for name, captured in streams.items():
        if captured.truncated:
            ctx.signal("shell.truncated", stream=name, written_bytes=captured.size, max_bytes=limit)
    sizes = {f"{name}_bytes": captured.size for name, captured in streams.items()}
    ctx.signal("shell.completed", exit_code=finished.exit_code, **sizes, survivors=finished.survivors)


def _stdin(value: Any) -> bytes:
    from . import _process

    return _process.encode("stdin", value if isinstance(value, str) else encode(value), nul=True)
