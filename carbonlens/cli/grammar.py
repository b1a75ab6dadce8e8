"""Commands out of typed functions: what a function's signature says becomes click's parameters.

A command is a function whose arguments are ``Annotated`` with an ``Option`` or an ``Argument``:
one without a default is required, ``list[...]`` may be given several times, ``Literal[...]`` takes
one of its texts, and ``bool`` is a flag. A signature is read when its command is called or
described, and not when the command is registered: a list of commands needs none of them.

Whatever click prints differently from version to version, and people or scripts read, is made
here: the help's sections, the order of commands, how values and arguments are named.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal, get_origin

import click
from click.exceptions import Exit

from carbonlens.cli import other_bytes
from carbonlens.cli.grammar_types import metavar_of, signature_of, type_of, value_of

__all__ = ["Argument", "Command", "Commands", "Exit", "Option", "named"]

_NOTHING: Final = inspect.Parameter.empty
"""The default of an argument that has none."""
_WRONG: Final = 2
"""Exit code where the request itself is wrong, as click has it."""
_INTERRUPTED: Final = 130
"""Exit code after Ctrl-C: 128 and the number of its signal, as shells have it."""


class Option:
    """What is said of an argument of a function that is an option on the command line.

    Args:
        names: As they are written: ``--output``, also ``-o``.
        help: One sentence, for the help.
        metavar: What the help calls its value [its type].
        min: Least number that is taken.
        parser: Makes the value of the text.
        callback: Called with the value before any other option is looked at.
        dir_okay: Whether a path may be a folder.
        is_path: Whether a text names a file or folder, which may be of any bytes.
    """

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: float | None = None,
        parser: Callable[[str], Any] | None = None,
        callback: Callable[[Any], object] | None = None,
        dir_okay: bool = True,
        is_path: bool = False,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.value: dict[str, Any] = {"min": min, "parser": parser, "dir_okay": dir_okay}
        self.callback = callback
        self.is_path = is_path

    def parameter(self, name: str, kind: Any, default: Any) -> click.Option:  # noqa: ANN401  # any type and value
        """Return click's parameter for the argument of this name, type and default."""
        told: dict[str, Any] = {"help": self.help, "required": default is _NOTHING}
        if default is not _NOTHING:
            told |= {"default": default, "show_default": default not in (None, "")}
        if self.callback is not None:
            called = self.callback
            told |= {"callback": lambda _context, _parameter, value: called(value), "is_eager": True}
        if kind is bool:
            told["is_flag"] = True
        else:
            kind, told["multiple"] = value_of(kind)
            told |= {"type": type_of(kind, **self.value), "metavar": self.metavar or metavar_of(kind)}
        return click.Option([name, *self.names], **told)


class Argument:
    """What is said of an argument of a function that is given by its place on the command line.

    Args:
        help: One sentence, for the help.
        metavar: What the help calls it [its name].
        show_default: Whether the help tells its default.
        is_path: As of an option.
    """

    def __init__(
        self,
        *,
        help: str,
        metavar: str | None = None,
        show_default: bool = True,
        is_path: bool = False,
    ) -> None:
        self.help = help
        self.metavar = metavar
        self.show_default = show_default
        self.is_path = is_path

    def parameter(self, name: str, kind: Any, default: Any) -> click.Argument:  # noqa: ANN401  # any type and value
        """Return click's parameter for the argument of this name, type and default."""
        kind, several = value_of(kind)
        given = {} if default in (_NOTHING, None) else {"default": default}
        made = _Argument(
            [name],
            type=type_of(kind),
            nargs=-1 if several else 1,
            required=default is _NOTHING,
            metavar=self.metavar or name,
            **given,
        )
        made.choices = metavar_of(kind) if get_origin(kind) is Literal and not self.metavar else ""
        extra = "required" if made.required else f"default: {default}" if given and self.show_default else ""
        made.row = f"{self.help}  [{extra}]" if extra else self.help
        return made


class _Argument(click.Argument):
    """An argument that the help describes, as it does an option."""

    choices = ""
    """The texts that it takes, where it takes no other."""
    row = ""
    """What the help says of it."""

    def _called(self, name: str) -> str:
        return f"{name}:{self.choices}" if self.choices else name

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return its name in braces where it is required, else in brackets."""
        name = self.human_readable_name
        if name.startswith("["):
            return [name]
        return [self._called(f"{{{name}}}" if self.required else f"[{name}]")]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002  # click's signature
        """Return its row of the help."""
        return self._called(self.human_readable_name), self.row

    def get_error_hint(self, ctx: click.Context | None) -> str:  # noqa: ARG002  # click's signature
        """Return what a message calls it."""
        return f"'{self.human_readable_name}'"


class Command(click.Command):
    """A command that calls a function with what the command line gives.

    Args:
        name: What it is called by.
        function: Its signature says what it takes.
        help: For the help [the function's own text].
        any_bytes: Whether it takes texts that are no UTF-8.
        more: What click takes besides.
    """

    def __init__(
        self,
        name: str | None,
        function: Callable[..., object],
        *,
        help: str | None = None,
        any_bytes: bool = False,
        **more: Any,  # noqa: ANN401  # click's own
    ) -> None:
        text = inspect.cleandoc(help or function.__doc__ or "")
        super().__init__(name, help=text, callback=self._call, **more)
        self._function = function
        self._any_bytes = any_bytes
        self._defaults: dict[str, Any] | None = None  # not read yet
        self._in_utf8: list[str] = []

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; the function's signature is read the first time."""
        if self._defaults is None:
            taken = signature_of(self._function)
            self._defaults = {name: default for name, _, default in taken}
            self._in_utf8 = [
                n for n, kind, _ in taken if not (self._any_bytes or kind.__metadata__[0].is_path)
            ]
            self.params = [
                kind.__metadata__[0].parameter(name, kind.__origin__, x) for name, kind, x in taken
            ]
        return super().get_params(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            told = [p.get_help_record(ctx) for p in self.get_params(ctx) if p.param_type_name == kind]
            rows = [row for row in told if row is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _call(self, **given: Any) -> object:  # noqa: ANN401  # whatever was given
        """Call the function, with lists where several may be given, and its default where none was.

        Raises:
            UsageError: If a text is no UTF-8: neither a record nor a report could hold it. A path may
                be of any bytes, as the system's are.
        """
        for parameter in self.params:
            if parameter.name in self._in_utf8:
                is_option = parameter.param_type_name == "option"
                called = parameter.opts[-1] if is_option else parameter.human_readable_name.strip("[]")
                other_bytes.refuse(called, given[parameter.name])
        lists = {n: list(v) or (self._defaults or {})[n] for n, v in given.items() if isinstance(v, tuple)}
        return self._function(**given | lists)


class Commands(Command, click.Group):
    """Commands under one name, in the order in which they were added.

    Args:
        help: What they are for.
        before: A function that takes the options before the command's name.
        alone: Whether that function stands alone too; else the help is shown where no command is named.
        more: What click takes besides.
    """

    def __init__(
        self,
        *,
        help: str,
        before: Callable[..., object] = lambda: None,
        alone: bool = False,
        **more: Any,  # noqa: ANN401  # click's own
    ) -> None:
        super().__init__(
            None,
            before,
            help=help,
            invoke_without_command=alone,
            no_args_is_help=False,
            subcommand_metavar="COMMAND [ARGS]...",
            **more,
        )
        self._alone = alone

    def add(
        self,
        name: str,
        function: Callable[..., object],
        *,
        options_first: bool = False,
        any_bytes: bool = False,
    ) -> None:
        """Add a command.

        Args:
            name: What it is called by.
            function: What it does.
            options_first: Whether everything after its first argument is an argument too.
            any_bytes: Whether it takes texts that are no UTF-8.
        """
        settings = {"allow_interspersed_args": False} if options_first else None
        self.add_command(Command(name, function, any_bytes=any_bytes, context_settings=settings))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the commands as they were added, where click would sort them."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options; where nothing is asked, say on stderr what could be."""
        if not args and not self._alone and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(_WRONG)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named; name the nearest ones where there is none."""
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            from difflib import get_close_matches

            close = ", ".join(map(repr, get_close_matches(name, self.commands)))
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {close}?" if close else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; Ctrl-C gives the exit code that shells know."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Exit(_INTERRUPTED) from error


def named() -> str | None:
    """Return the command that is named after the one that runs."""
    return click.get_current_context().invoked_subcommand
