"""User templates: a user's own blocks around our figures, rendered without power over anything else."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.errors import CarbonlensError, ConfigError, VerificationError
from carbonlens.render.check import check_view
from carbonlens.render.environment import ENVIRONMENT, need, own_loader, template_environment
from carbonlens.render.look import Look
from carbonlens.render.own_page import own_css, page_faults
from carbonlens.render.own_styles import style_faults
from carbonlens.render.page_text import page_text
from carbonlens.render.versions import texts_of
from carbonlens.reporting.content import Aspect, ReportView
from carbonlens.reporting.document import Document, Tiles
from carbonlens.reporting.document_view import DocumentView
from carbonlens.reporting.view import figure_ids

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

OURS: Final = "carbonlens/"
"""Before the name of a shipped template, which a user's template of the same name extends."""

PAGES: Final = (
    "report.html.j2",
    "business_case/page.html.j2",
    "business_case/investment.html.j2",
    "engineering/page.html.j2",
    "sustainability/page.html.j2",
)
"""Shipped templates with blocks."""

CPU_S: Final = 10.0
MOST_CHARACTERS: Final = 64 * 1024 * 1024
_MOST_BITS: Final = 4096

_View = ReportView | DocumentView

_REQUIRED: Final[dict[str, tuple[str, str, Callable[[Any], object]]]] = {
    "business-case": (PAGES[1], "tiles", lambda view: view.business_case.tiles),
    "engineering": (PAGES[3], "effects", lambda view: view.engineering.effects),
    "sustainability": (PAGES[4], "statement", lambda view: _tiles(view.document)),
}
"""What no page of a section may leave out: template, block, and what it prints."""

_PRINT: Final = "print numbers with say() or figure(); codes such as P95 in <span data-label>"
_BESIDE: Final = "words, tables and {{ asset('NAME') }}; rules go into block own_style of report.html.j2"


def _tiles(document: Document) -> tuple[Tiles, ...]:
    """Return the headline figures of a document."""
    return tuple(b for s in document.sections for b in s.blocks if isinstance(b, Tiles))


class _TooMuchError(Exception):
    """A template ran too long or wrote too much."""


def composed(look: Look, variables: Mapping[str, Any], view: _View) -> str:
    """Return the page that a user's templates make, after the self-check.

    Args:
        look: The templates.
        variables: What every page is made of.
        view: What it prints.

    Raises:
        ConfigError: If a template is broken, runs away, leaves out what must be shown or loads
            something; the text names file and line.
        VerificationError: If a printed number is not that of its figure.
    """
    environment = sandbox(look)
    check_templates(look)
    environment.globals.update(figure=_figure_of(view), asset=_asset_of(look))
    page = _rendered(environment, look, variables)
    try:
        check_view(page, _as_shown(page, view, variables))
    except VerificationError as error:
        raise _relocated(look, error) from error
    _check_required(look, page, variables["sections"], view)
    _check_own(look, page, variables, view)
    return page


def _as_shown(page: str, view: _View, variables: Mapping[str, Any]) -> _View:
    """Return the view with those charts of a document that the user's blocks have left on the page."""
    if isinstance(view, ReportView):
        return view
    drawn = {name: str((chart or {}).get("wide")) for name, chart in variables["charts"].items()}
    shown = {name: plot for name, plot in view.plots.items() if drawn[name] in page}
    return msgspec.structs.replace(view, plots=shown)


def sandbox(look: Look) -> SandboxedEnvironment:
    """Return the environment of a user's templates: theirs first, ours below ``carbonlens/``.

    Args:
        look: The templates.

    Raises:
        MissingExtraError: If Jinja is not installed.
    """
    jinja2 = need("jinja2")
    base = need("jinja2.sandbox").ImmutableSandboxedEnvironment

    class Sandbox(base):  # type: ignore[misc, valid-type]  # jinja is imported late
        intercepted_binops = frozenset(("*", "**"))

        def call_binop(self, context: object, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401  # values of a template
            _check_size(operator, left, right)
            return super().call_binop(context, operator, left, right)

    def load(name: str) -> tuple[str, str, None] | None:
        source = look.templates.get(name)
        return None if source is None else (source, _path(look, name), None)

    written = 0

    def counted_out(value: object) -> object:
        nonlocal written
        written += len(value) if isinstance(value, str) else 0
        if written > MOST_CHARACTERS:
            raise _TooMuchError(f"writes more than {MOST_CHARACTERS >> 20} million characters")
        return value

    ours = own_loader()
    made: SandboxedEnvironment = Sandbox(
        loader=jinja2.ChoiceLoader(
            [jinja2.FunctionLoader(load), ours, jinja2.PrefixLoader({OURS.rstrip("/"): ours})]
        ),
        undefined=jinja2.StrictUndefined,
        finalize=counted_out,
        **ENVIRONMENT,
    )
    return made


def check_templates(look: Look) -> None:
    """Refuse templates that cannot work, before anything is rendered.

    Args:
        look: The templates.

    Raises:
        ConfigError: If one cannot be read, replaces a page of ours without extending it, or fills a
            block that there is not; the text names file and line.
    """
    jinja2 = need("jinja2")
    environment = sandbox(look)
    for name in look.templates:
        try:
            tree = environment.parse(look.templates[name], name, _path(look, name))
        except jinja2.TemplateSyntaxError as error:
            raise _broken(look, error.name or name, error.lineno, str(error.message)) from error
        except RecursionError as error:
            raise _broken(look, name, 1, "is nested too deeply to be read") from error
        if name.startswith(OURS):
            raise _broken(look, name, 1, f"stands below {OURS}, where only ours are", "move it")
        if name in PAGES:
            _check_extends(look, name, tree)
            _check_blocks(environment, look, name, tree)


def blocks_of(source: str) -> tuple[tuple[str, str], ...]:
    """Return the blocks of a shipped template with the line that says what each holds.

    Args:
        source: The template.
    """
    found = re.findall(r"\{% block (\w+) %\}\{# (.*?) #\}", source)
    return tuple((str(name), str(words)) for name, words in found)


def _check_extends(look: Look, name: str, tree: Any) -> None:  # noqa: ANN401  # jinja is imported late
    """Refuse a page that does not begin with the one line that makes it ours, whatever happens in it."""
    nodes = need("jinja2.nodes")
    first = next((n for n in tree.body if not _is_blank(n)), None)
    parent = first.template if isinstance(first, nodes.Extends) else None
    once = len(list(tree.find_all(nodes.Extends))) == 1
    if not once or getattr(parent, "value", None) != f"{OURS}{name}":
        raise _broken(
            look, name, 1, "replaces a page of ours", f'begin it with {{% extends "{OURS}{name}" %}}'
        )


def _is_blank(node: Any) -> bool:  # noqa: ANN401  # jinja is imported late
    kinds = need("jinja2.nodes")
    return isinstance(node, kinds.Output) and all(
        isinstance(part, kinds.TemplateData) and not part.data.strip() for part in node.nodes
    )


def _check_blocks(
    environment: SandboxedEnvironment,
    look: Look,
    name: str,
    tree: Any,  # noqa: ANN401  # jinja is imported late
) -> None:
    assert environment.loader is not None  # noqa: S101  # sandbox() gave it one
    source, _, _ = environment.loader.get_source(environment, f"{OURS}{name}")
    known = [block for block, _ in blocks_of(source)]
    kind = need("jinja2.nodes").Block
    # A block inside one of theirs is their own business.
    for node in tree.body:
        if isinstance(node, kind) and node.name not in known:
            raise _broken(
                look, name, node.lineno, f"there is no block {node.name!r}", f"known: {', '.join(known)}"
            )


def _rendered(environment: SandboxedEnvironment, look: Look, variables: Mapping[str, Any]) -> str:
    jinja2 = need("jinja2")
    parts: list[str] = []
    written = 0
    try:
        with _in_time():
            for part in environment.get_template("report.html.j2").generate(**variables):
                written += len(part)
                if written > MOST_CHARACTERS:
                    raise _TooMuchError(f"writes more than {MOST_CHARACTERS >> 20} million characters")
                parts.append(part)
    except jinja2.TemplateSyntaxError as error:
        raise _broken(look, error.name or "report.html.j2", error.lineno, str(error.message)) from error
    except jinja2.TemplateNotFound as error:
        raise _at(look, error, f"there is no template {error.name!r}") from error
    except CarbonlensError:
        raise
    except MemoryError as error:
        raise _at(look, error, "needs more memory than a report may take") from error
    except RecursionError as error:
        raise _at(look, error, "calls itself without end") from error
    except Exception as error:  # whatever a template trips over is its own fault
        raise _at(look, error, str(error) or type(error).__name__) from error
    return "".join(parts)


@contextmanager
def _in_time() -> Iterator[None]:
    """Stop a template that never ends, by the processor's time, where it is; in the main thread only."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise _TooMuchError(f"runs for more than {CPU_S:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _check_size(operator: str, left: object, right: object) -> None:
    """Refuse an operation that takes for ever before anything can stop it."""
    if not isinstance(left, int) or not isinstance(right, int):
        if operator == "*" and any(isinstance(one, str | list | tuple) for one in (left, right)):
            times = next((one for one in (left, right) if isinstance(one, int)), 0)
            if times > MOST_CHARACTERS:
                raise _TooMuchError("repeats a text more often than any page needs")
        return
    bits = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
    if bits > _MOST_BITS:
        raise _TooMuchError("computes with a number of more digits than any page needs")


def _figure_of(view: _View) -> Callable[..., str]:
    markup = need("markupsafe").Markup

    def figure(figure_id: str, aspect: Aspect = "text") -> str:
        known = view.figures.get(figure_id)
        if known is None:
            near = [name for name in view.figures if name.split(".")[0] == str(figure_id).split(".")[0]]
            some = ", ".join((near or list(view.figures))[:3])
            raise LookupError(f"this report has no figure {figure_id!r}, but {some} ...")
        made: str = markup('<span class="{0}" data-figure="{1}" data-aspect="{0}">{2}</span>').format(
            aspect, figure_id, known.form(aspect)
        )
        return made

    return figure


def _asset_of(look: Look) -> Callable[[str], str]:
    def asset(name: str) -> str:
        if name not in look.assets:
            known = ", ".join(sorted(look.assets)) or "none"
            raise LookupError(f"there is no picture {name!r} in the folder (there: {known})")
        return look.assets[name]

    return asset


def _check_required(look: Look, page: str, sections: tuple[str, ...], view: _View) -> None:
    printed = page_text(page).figure_ids
    for section in sections:
        template, block, part = _REQUIRED.get(section, ("", "", lambda _: ()))
        missing = [name for name in dict.fromkeys(figure_ids(part(view))) if name not in printed]
        if missing:
            raise _broken(
                look, template, _line(look, template, rf"\bblock\s+{block}\b"),
                f"leaves out {counted(len(missing), 'figure')} that the page must show, first {missing[0]!r}",
                "print them with say() or figure(), or add to the block with {{ super() }}",
            )  # fmt: skip


def _check_own(look: Look, page: str, variables: Mapping[str, Any], view: _View) -> None:
    """Refuse what a page may not have beside what our own templates make of the same."""
    ours = template_environment().get_template(PAGES[0]).render(**variables)
    pictures = {*look.assets.values(), *(() if look.logo is None else (look.logo.uri,))}
    drawings = {
        str(drawn)
        for chart in variables["charts"].values()
        for drawn in (chart or {}).values()
        if drawn is not None
    }
    rules = own_css(page, *(str(variables[name]) for name in ("styles", "kind_styles")), look.css)
    faults = [
        *page_faults(page, ours, drawings=drawings, pictures=pictures, texts=frozenset(texts_of(view))),
        *style_faults(rules, pictures),
    ]
    if faults:
        # What is loaded or hidden first: a number in it is the lesser fault.
        fault = min(faults, key=lambda one: one.is_number)
        name, line = _place_of(look, fault.text)
        if fault.is_number:
            raise VerificationError(fault.what, where=f"{_path(look, name)}:{line}", mend=_PRINT)
        raise _broken(look, name, line, fault.what, _BESIDE)


def _relocated(look: Look, error: VerificationError) -> VerificationError:
    """Return the refusal with the place in the user's templates where its number stands, if it does."""
    quoted = re.search(r"'(.*?)'", error.what)
    name, line = _place_of(look, quoted[1] if quoted else str(error.where))
    return VerificationError(
        f"{error.what} ({error.where})" if error.where else error.what,
        where=f"{_path(look, name)}:{line}",
        mend=_PRINT,
    )


def _place_of(look: Look, text: str) -> tuple[str, int]:
    """Return the template and line in which a text stands; the first template where none has it."""
    wanted = [text, *sorted(re.findall(r"\w*\d\w*", text), key=len, reverse=True)]
    for one in (w for w in wanted if w):
        for name, source in look.templates.items():
            for number, line in enumerate(source.splitlines(), 1):
                if one in line or one in unescape(line):
                    return name, number
    return next(iter(look.templates)), 1


def _line(look: Look, name: str, pattern: str) -> int:
    source = look.templates.get(name, "")
    found = re.search(pattern, source)
    return 1 if found is None else source.count("\n", 0, found.start()) + 1


def _at(look: Look, error: BaseException, what: str) -> ConfigError:
    """Return the error with the innermost line of the user's own templates that led to it."""
    own = {_path(look, name): name for name in look.templates}
    places = [(own[file], line) for file, line in _lines(error) if file in own]
    name, line = places[-1] if places else (next(iter(look.templates)), 1)
    return _broken(look, name, line, what)


def _lines(error: BaseException | None) -> Iterator[tuple[str, int]]:
    """Yield the places that led to an error, outermost first, those of what it came of last.

    Jinja puts a template's own lines into a trace; where there is no memory left to do so, the
    trace has those of the compiled template.
    """
    if error is None:
        return
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template is None:
            yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        else:
            yield template.filename, template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error.__context__, MemoryError):
        yield from _lines(error.__context__)


def _broken(look: Look, name: str, line: int, what: str, mend: str = "mend the template") -> ConfigError:
    return ConfigError(what, where=f"{_path(look, name)}:{line}", mend=mend)


def _path(look: Look, name: str) -> str:
    return str(PurePosixPath(look.folder) / name)
