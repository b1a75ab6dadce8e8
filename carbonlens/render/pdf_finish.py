"""Finishing a PDF: what WeasyPrint leaves undone before its objects are written, and writing each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from carbonlens.render.environment import need

if TYPE_CHECKING:
    from pydyf import PDF, Dictionary  # type: ignore[import-untyped]  # it ships no types
    from weasyprint import Document

Elements: TypeAlias = "Mapping[int, Dictionary]"
"""Structure elements by their object's number."""

_ARTIFACT = "/Artifact"


def finish(_: Document, pdf: PDF) -> None:
    """Mend the tags of a PDF, and have each of its objects made into bytes once.

    Args:
        _: As WeasyPrint laid it out.
        pdf: As WeasyPrint made it.
    """
    held: list[Any] = pdf.objects
    elements = {o.number: o for o in held if hasattr(o, "get") and o.get("Type") == "/StructElem"}
    _with_scopes(elements)
    _without_running_text(pdf, elements)
    _made_once(pdf)


def _with_scopes(elements: Elements) -> None:
    """Say of every header cell whether it heads a column or a row (ISO 14289-1, 7.5).

    WeasyPrint tells cells their headers; the corner cell, which heads no cell, has nothing then.
    """
    for element in elements.values():
        if element["S"] == "/TH" and "A" in element:
            element["A"]["Scope"] = "/Column" if _is_in_head(element, elements) else "/Row"


def _is_in_head(element: Dictionary, elements: Elements) -> bool:
    while element is not None and element["S"] != "/Table":
        if element["S"] == "/THead":
            return True
        element = elements.get(_number(element["P"]))
    return False


def _without_running_text(pdf: PDF, elements: Elements) -> None:
    """Mark what stands in the margins of every page as an artifact (ISO 14289-1, 7.1 and 7.8).

    WeasyPrint tags it as content, with elements that are in no tree.
    """
    if "StructTreeRoot" not in pdf.catalog:
        return
    root = pdf.objects[_number(pdf.catalog["StructTreeRoot"])]
    told = _reached(root, elements)
    mapping = pdf.objects[_number(root["ParentTree"])]["Nums"]
    by_key = dict(zip(mapping[::2], mapping[1::2], strict=True))
    for page in (pdf.objects[number] for number in pdf.pages["Kids"][::3]):
        owners = by_key[page["StructParents"]]
        running = {mcid for mcid, owner in enumerate(owners) if _number(owner) not in told}
        _as_artifacts(pdf.objects[_number(page["Contents"])].stream, running)
        for mcid in running:
            owners[mcid] = b"null"
    for number in elements.keys() - told:
        elements[number].clear()  # its number stays: objects are found by it


def _reached(root: Dictionary, elements: Elements) -> set[int]:
    """Return the numbers of the elements that are in the tree."""
    reached: set[int] = set()
    waiting = list(_kids(root))
    while waiting:
        number = waiting.pop()
        if number in elements and number not in reached:
            reached.add(number)
            waiting += _kids(elements[number])
    return reached


def _kids(element: Dictionary) -> Iterator[int]:
    """Yield the numbers of what is referred to; a bare number is a mark in a page, not an object."""
    return (_number(kid) for kid in element.get("K", ()) if isinstance(kid, bytes))


def _as_artifacts(stream: list[Any], marks: set[int]) -> None:
    """Rewrite the marks of these numbers: name, properties and operator follow one another."""
    for at, item in enumerate(stream):
        if hasattr(item, "get") and item.get("MCID") in marks:
            stream[at - 1] = _ARTIFACT
            item.clear()
            item["Type"] = "/Pagination"


def _number(reference: str | bytes) -> int:
    return int((reference.decode() if isinstance(reference, bytes) else reference).split()[0])


def _made_once(pdf: PDF) -> None:
    """Put finished bytes in the place of every object: pydyf makes, and packs, each twice.

    It does so once to write it and once for the file's own identifier.
    """
    ready = _ready_object()
    pdf.objects[:] = [o if o.free == "f" else ready(o) for o in pdf.objects]


@cache
def _ready_object() -> Any:  # noqa: ANN401  # a class of a package that is imported late
    class Ready(need("pydyf").Object):  # type: ignore[misc]  # likewise
        """An object whose bytes are made."""

        data = b""
        compressible = False

        def __init__(self, made: Any) -> None:  # noqa: ANN401  # any object of pydyf's
            super().__init__()
            self.number, self.generation = made.number, made.generation
            self.data, self.compressible = made.data, made.compressible

    return Ready
