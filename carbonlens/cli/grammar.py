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
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.exceptions import Exit

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
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.value: dict[str, Any] = {"min": min, "parser": parser, "dir_okay": dir_okay}
        self.callback = callback

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
            kind, told["multiple"] = _one(kind)
            told |= {"type": _type(kind, **self.value), "metavar": self.metavar or _metavar(kind)}
        return click.Option([name, *self.names], **told)


class Argument:
    """What is said of an argument of a function that is given by its place on the command line.

    Args:
        help: One sentence, for the help.
        metavar: What the help calls it [its name].
        show_default: Whether the help tells its default.
    """

    def __init__(
        self,
        *,
        help: str,
        metavar: str | None = None,
        show_default: bool = True,
    ) -> None:
        self.help = help
        self.metavar = metavar
        self.show_default = show_default

    def parameter(self, name: str, kind: Any, default: Any) -> click.Argument:  # noqa: ANN401  # any type and value
        """Return click's parameter for the argument of this name, type and default."""
        kind, several = _one(kind)
        given = {} if default in (_NOTHING, None) else {"default": default}
        made = _Argument(
            [name],
            type=_type(kind),
            nargs=-1 if several else 1,
            required=default is _NOTHING,
            metavar=self.metavar or name,
            **given,
        )
        made.choices = _metavar(kind) if get_origin(kind) is Literal and not self.metavar else ""
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
        more: What click takes besides.
    """

    def __init__(
        self,
        name: str | None,
        function: Callable[..., object],
        *,
        help: str | None = None,
        **more: Any,  # noqa: ANN401  # click's own
    ) -> None:
        text = inspect.cleandoc(help or function.__doc__ or "")
        super().__init__(name, help=text, callback=self._call, **more)
        self._function = function
        self._defaults: dict[str, Any] | None = None  # not read yet

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; the function's signature is read the first time."""
        if self._defaults is None:
            taken = _signature(self._function)
            self._defaults = {name: default for name, _, default in taken}
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
        """Call the function, with lists where several may be given, and its default where none was."""
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

    def add(self, name: str, function: Callable[..., object], *, options_first: bool = False) -> None:
        """Add a command.

        Args:
            name: What it is called by.
            function: What it does.
            options_first: Whether everything after its first argument is an argument too.
        """
        settings = {"allow_interspersed_args": False} if options_first else None
        self.add_command(Command(name, function, context_settings=settings))

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


def _signature(function: Callable[..., object]) -> list[tuple[str, Any, Any]]:
    """Return name, type and default of each argument of a function."""
    kinds = get_type_hints(function, include_extras=True)
    return [(p.name, kinds[p.name], p.default) for p in inspect.signature(function).parameters.values()]


def _one(kind: Any) -> tuple[Any, bool]:  # noqa: ANN401  # any type
    """Return the type of one value, and whether there may be several."""
    if get_origin(kind) in (Union, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        if len(kinds) == 1:
            (kind,) = kinds
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


def _type(
    kind: Any,  # noqa: ANN401  # any type
    *,
    min: float | None = None,
    parser: Callable[[str], Any] | None = None,
    dir_okay: bool = True,
) -> click.ParamType[Any]:
    """Return click's type for one value.

    Raises:
        TypeError: If there is none; a fault of the command's signature.
    """
    if parser is not None:
        return click.types.FuncParamType(parser)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is int:
        return click.INT if min is None else click.IntRange(min=int(min))
    if kind is float:
        return click.FLOAT if min is None else click.FloatRange(min=min)
    if kind is Path:
        return click.Path(dir_okay=dir_okay, path_type=Path)
    if kind is str:
        return click.STRING
    raise TypeError(f"no option or argument is of type {kind!r}")


def _metavar(kind: Any) -> str:  # noqa: ANN401  # any type
    """Return what the help calls a value of a type."""
    if get_origin(kind) is Literal:
        return f"<{'|'.join(get_args(kind))}>"
    return f"<{kind.__name__.lower()}>"
