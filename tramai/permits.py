"""What a workflow may reach: programs, hosts, MCP servers and folders, refused unless they are named."""

# No annotations from the future here: msgspec would have to compile their texts in every short run.

import os
from collections.abc import Iterable
from typing import Annotated

import msgspec

from .codec import sha256
from .running import Context
from .step import StepError

Meta = msgspec.Meta

SHELLS = ("bash", "sh")
"""What runs a script; either name permits it."""


class Permits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run may reach. Once this is there, nothing else is."""

    shell: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="Programs that tramai may start, by name or by path; `bash` is for scripts in `run`.",
            examples=[["bash", "git"]],
        ),
    ] = ()
    http: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="Hosts that `http` steps may ask, redirects included.",
            examples=[["api.github.com", "*.example.com"]],
        ),
    ] = ()
    mcp: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="MCP servers, by their name in the configuration, their program or their host."),
    ] = ()
    write: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="Folders in which agents may write and downloads go, relative to where the run is started.",
            examples=[["."]],
        ),
    ] = ()

    def program(self, name: str) -> bool:
        """Whether a program may be started, as far as its name tells."""
        from .program import spelled

        return any(spelled(name, entry) for entry in self.shell)

    def script(self) -> bool:
        """Whether a script may be run."""
        return any(name in self.shell for name in SHELLS)

    def server(self, name: str) -> bool:
        """Whether an MCP server may be asked, by its program or host."""
        return name in self.mcp

    def folder(self, path: str) -> bool:
        """Whether an agent may write in a folder, as far as the paths alone tell; `/` is everywhere."""
        if path == "/":
            return any(os.path.normpath(name) == "/" for name in self.write)
        # Where a relative path leads to is known once a run is started.
        return any(os.path.isabs(name) != os.path.isabs(path) or _holds(name, path) for name in self.write)

    def host(self, name: str) -> bool:
        """Whether a host may be asked."""
        return host_allowed(name, self.http)


def host_allowed(host: str, allowed: Iterable[str]) -> bool:
    """Whether a host is named: exactly, or below a `*.domain`."""
    host = host.lower()
    for name in allowed:
        name = name.lower()
        if host == name or (name.startswith("*.") and host.endswith(name[1:]) and len(host) >= len(name)):
            return True
    return False


def hosts_covered(pattern: str, allowed: Iterable[str]) -> bool:
    """Whether every host of a pattern is named."""
    if not pattern.startswith("*."):
        return host_allowed(pattern, allowed)
    below = pattern[1:].lower()
    return any(name.startswith("*.") and below.endswith(name[1:].lower()) for name in allowed)


def guard_program(ctx: Context, program: str | None, file: str | None = None) -> None:
    """Refuse a program before it is started; None is a script of `run`. A caller's permits bind as well.

    `file` is what the name means to the child: it has to be the file that a permit names.
    """
    for permits in ctx.permits:
        if not _permitted(permits, program, file, ctx.cwd):
            name = program if program is not None else SHELLS[0]
            ctx.signal("security.command_denied", policy="permits", command_digest=sha256(name)[:16])
            what = f"the program {name}" if program is not None else "a script"
            if file is not None and (permits.script() if program is None else permits.program(program)):
                what += f" in {file}"
            raise StepError("refused", f"{what} is not permitted", hint=_add("shell", name))


def _permitted(permits: Permits, program: str | None, file: str | None, cwd: str) -> bool:
    from .program import named

    if program is None:
        return permits.script() and (file is None or named(file, (*permits.shell, *SHELLS), cwd))
    return permits.program(program) if file is None else named(file, permits.shell, cwd)


def guard_server(ctx: Context, name: str) -> None:
    """Refuse an MCP server, by its program or host, before it is started or asked."""
    for permits in ctx.permits:
        if not permits.server(name):
            ctx.signal("security.server_denied", policy="permits", server_digest=sha256(name)[:16])
            raise StepError("refused", f"the MCP server {name} is not permitted", hint=_add("mcp", name))


def guard_folder(ctx: Context, path: str) -> None:
    """Refuse to let an agent write in a folder, links resolved; `/` is everywhere."""
    for permits in ctx.permits:
        real = os.path.realpath(path)
        if not any(_holds(os.path.realpath(os.path.join(ctx.cwd, name)), real) for name in permits.write):
            ctx.signal("security.folder_denied", policy="permits", folder_digest=sha256(path)[:16])
            raise StepError("refused", f"writing in {path} is not permitted", hint=_add("write", path))


def _holds(outer: str, inner: str) -> bool:
    """Whether a folder is another one or holds it."""
    outer, inner = os.path.normpath(outer), os.path.normpath(inner)
    if outer == ".":
        return not os.path.isabs(inner) and inner.split(os.sep)[0] != os.pardir
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def guard_host(ctx_permits: Iterable[Permits], host: str) -> None:
    """Refuse a host before it is asked, redirects included."""
    for permits in ctx_permits:
        if not permits.host(host):
            raise StepError("refused", f"the host {host} is not permitted", hint=_add("http", host))


def _add(kind: str, name: str) -> str:
    return f"if it is meant, add {name} to permits.{kind}"
