"""The `tramai` group: a command's module is imported when it is called, global flags stand before or after its name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import click

from .. import __version__
from ..errors import UsageError
from ._session import Session

SECTIONS = {
    "Start": {
        "demo": "Show a run that fails and is resumed, in seconds, offline.",
        "init": "Write a first workflow file.",
        "run": "Run a workflow file.",
        "resume": "Go on with a run after a crash, a pause or a failure.",
        "rerun": "Start a new run with the inputs of an earlier one.",
        "status": "Show what needs you: decisions, failures, unknown outcomes.",
    },
    "Write": {
        "validate": "Find every mistake in workflow files.",
        "fmt": "Put workflow files into canonical form.",
        "convert": "Write a workflow file as TOML or YAML.",
        "plan": "Show what a run would do, without doing it.",
        "test": "Run workflow tests, with stubs in the place of the world.",
        "graph": "Draw the steps of a workflow or a run.",
        "digest": "Print the digest of workflow files.",
        "schema": "Print a JSON Schema, or the reference of a verb.",
        "explain": "Explain an error code or a key, with examples.",
    },
    "Runs": {
        "list": "List runs, newest first.",
        "show": "Show one run: steps, attempts, events.",
        "watch": "Follow a run until it is over.",
        "logs": "Print what the steps of a run wrote.",
        "export": "Write down a whole run as one document, for a ticket.",
        "diff": "Show what has changed since a run was started.",
        "approve": "Approve what a gate asks.",
        "reject": "Reject what a gate asks.",
        "cancel": "Cancel a run for good.",
        "resolve": "Say what became of a step whose end was not seen.",
    },
    "Operate": {
        "worker": "Carry out runs that wait in a store; list workers, drain one.",
        "schedule": "Start runs at their times: apply, list, next, history, pause.",
        "store": "Look after a store: info, check, migrate, prune, copy, move.",
        "config": "Look at settings: show, and where each comes from.",
        "plugin": "Look at what installed packages bring: list.",
        "doctor": "Look at whether this machine has what runs need.",
    },
    "Help": {
        "help": "Explain a topic or a command, offline.",
        "completion": "Print the completion script of a shell.",
    },
}
SUMMARIES = {name: summary for section in SECTIONS.values() for name, summary in section.items()}
CONTEXT = {"help_option_names": ["-h", "--help"], "terminal_width": 80}


class GlobalFlag(click.Option):
    """A flag of every command. Only what was really given is kept, so that the later place wins over the earlier."""

    def __init__(self, *declarations: str, **attributes: Any) -> None:
        super().__init__(declarations, expose_value=False, callback=keep, **attributes)


def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Remember a flag that was really given in the session, where settings look for it."""
    session = context.find_root().obj
    if session is not None and value not in (None, False) and parameter.name:
        session.flags[parameter.name] = value


def global_flags() -> list[click.Parameter]:
    """Fresh copies of the flags that every command has."""
    return [
        GlobalFlag("-q", "--quiet", is_flag=True, help="Print results and errors only."),
        GlobalFlag("-v", "--verbose", is_flag=True, help="Print more: whole digests, replayed steps, settings."),
        GlobalFlag("--debug", is_flag=True, help="After an internal failure, show what is behind it."),
        GlobalFlag("--json", is_flag=True, help="Print one JSON document (run and resume: one event a line)."),
        GlobalFlag("--color", metavar="WHEN", help="auto, always or never."),
        GlobalFlag("--progress", metavar="HOW", help="auto, live, plain, none, github, gitlab or azure."),
        GlobalFlag("--no-input", is_flag=True, help="Never ask; a question becomes an error."),
        GlobalFlag("-y", "--yes", is_flag=True, help="Answer every question with yes."),
        GlobalFlag("-C", "directory", metavar="DIR", help="Change to this folder first."),
        GlobalFlag(
            "--store",
            metavar="URL",
            help="Where runs are kept: sqlite:PATH, file:DIR, markdown:DIR, postgresql://HOST/DB, memory:"
            "  [env: TRAMAI_STORE]",
        ),
        GlobalFlag("--env-file", metavar="FILE", help="Take variables from a file; those that are set stay."),
    ]


def _print_help(context: click.Context, _: click.Parameter, value: bool) -> None:
    """By our own stream: click's knows nothing of full disks, and makes 1 of a reader that went away."""
    if not value or context.resilient_parsing:
        return
    session = context.find_root().obj
    if session is None:
        click.echo(context.get_help())
    else:
        session.out.line(context.get_help())
    context.exit()


class Helped(click.Command):
    """A command that prints its help by our own stream."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option with our callback."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _print_help
        return option


class Command(Helped):
    """A command with examples before everything else and the global flags after its own."""

    def __init__(self, *, examples: Sequence[str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.examples = tuple(examples)
        self.params.extend(global_flags())

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command with the session as its first argument."""
        session = ctx.find_root().obj
        assert isinstance(session, Session)
        session.begin()
        assert self.callback is not None
        with ctx:
            return self.callback(session, **ctx.params)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, usage, text, options, global options."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"  {example}\n")
        formatter.write("\n")
        super().format_help(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Own options first, global ones in a section of their own."""
        for title, wanted in (("Options", False), ("Global options", True)):
            rows = [
                record
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option)
                and isinstance(parameter, GlobalFlag) is wanted
                and (record := parameter.get_help_record(ctx))
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Noun(Command, click.Group):
    """A command that holds verbs: `tramai store info`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb."""
        return click.Group.invoke(self, ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs, then the options."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help or "") for name, command in self.commands.items()])
        super().format_options(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was probably meant."""
        if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], self.commands, n=1, cutoff=0.5)
            path = ctx.command_path
            hint = f"did you mean '{path} {near[0]}'?" if near else f"{path} --help lists them"
            raise UsageError(what=f"no such command '{self.name} {args[0]}'", hint=hint)
        return click.Group.resolve_command(self, ctx, args)


class Doer(Noun):
    """A command that does something without a verb: `tramai worker`, and `tramai worker list`."""

    def __init__(self, *, does: Callable[..., int], **attributes: Any) -> None:
        params = list(reversed(getattr(does, "__click_params__", [])))
        super().__init__(params=params, invoke_without_command=True, **attributes)
        self._does = does

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb, or do what it does without one."""
        if getattr(ctx, "_protected_args", None) or ctx.args:
            return Noun.invoke(self, ctx)
        session = ctx.find_root().obj
        assert isinstance(session, Session)
        session.begin()
        with ctx:
            return self._does(session, **ctx.params)


def doer(name: str, text: str, does: Callable[..., int], verbs: Sequence[Command], *examples: str) -> Doer:
    """Make the command `name` that does something and holds these verbs."""
    return Doer(
        does=does,
        name=name,
        help=_as_written(text),
        short_help=SUMMARIES[name],
        commands=list(verbs),
        no_args_is_help=False,
        examples=examples,
        context_settings=CONTEXT,
    )


def noun(name: str, text: str, verbs: Sequence[Command], *examples: str) -> Noun:
    """Make the command `name` that holds these verbs; `text` is its help."""
    return Noun(
        name=name,
        help=_as_written(text),
        short_help=SUMMARIES[name],
        commands=list(verbs),
        no_args_is_help=False,
        examples=examples,
        context_settings=CONTEXT,
    )


def verb(name: str, *examples: str, summary: str | None = None) -> Callable[[Callable[..., int]], Command]:
    """Make a function the command `name`. It gets the Session first and returns the exit status.

    A verb of a noun brings its `summary`; that of others stands in SECTIONS.
    """

    def wrap(function: Callable[..., int]) -> Command:
        parameters = list(reversed(getattr(function, "__click_params__", [])))
        return Command(
            name=name,
            callback=function,
            params=parameters,
            help=_as_written(function.__doc__ or ""),
            short_help=SUMMARIES[name] if summary is None else summary,
            examples=examples,
            context_settings=CONTEXT,
        )

    return wrap


def inputs(help: str) -> Callable[[Any], Any]:
    """The option `-i` of a verb that binds inputs."""
    return click.option("-i", "--input", "pairs", metavar="KEY=VALUE", multiple=True, help=help)


def _as_written(text: str) -> str:
    """A docstring whose line breaks are kept: a command that is broken over two lines cannot be copied."""
    import inspect

    return "\n\n".join(f"\b\n{part}" for part in inspect.cleandoc(text).replace("\b\n", "").split("\n\n"))


class Group(Helped, click.Group):
    """All commands, listed from a table and loaded one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the help text."""
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of that name."""
        if cmd_name not in SUMMARIES:
            return None
        found = importlib.import_module(f"tramai.cli.{cmd_name}").command
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        if args[0] not in SUMMARIES and not args[0].startswith("-") and not ctx.resilient_parsing:
            from ._other_words import hint

            raise UsageError(what=f"no such command '{args[0]}'", hint=hint(args[0], list(SUMMARIES)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section, without importing one."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=12)

    def main(self, args: Sequence[str] | None = None, *_: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Parse and run inside the error edge; leaves by SystemExit as click's own does."""
        import sys

        from ._errors import guarded

        status = guarded(list(sys.argv[1:] if args is None else args))
        if standalone_mode:
            sys.exit(status)
        return status

    def call(self, session: Session) -> int:
        """Parse the session's arguments and run what they name; raises what went wrong."""
        try:
            status = super().main(session.arguments, "tramai", standalone_mode=False, obj=session)
        except click.exceptions.Abort:  # what click makes of Ctrl-C
            raise KeyboardInterrupt from None
        return status if isinstance(status, int) else 0


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    session = context.find_root().obj
    if session is not None and session.json:
        session.emit({"schema": "tramai.version/1", "version": __version__})
    elif session is not None:
        session.out.line(f"tramai {__version__}")
    context.exit()


HELP = """Durable workflows written as YAML or TOML files.

\b
  tramai demo                             see it at work, offline
  tramai run review.yaml -i base=main     start a run
  tramai resume k3f9q2mz                  go on with it after anything
"""

group = Group(
    name="tramai",
    help=HELP,
    epilog=(
        "\b\ntramai COMMAND --help shows examples and every flag of a command.\n"
        "tramai help lists topics: expressions, secrets, replay and others."
    ),
    params=[
        *global_flags(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version.",
        ),
    ],
    invoke_without_command=False,
    no_args_is_help=False,
    context_settings=CONTEXT,
)
