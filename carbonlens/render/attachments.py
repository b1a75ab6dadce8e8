"""Attachments: what a report carries so that anyone can compute it again.

In a PDF they are embedded files, in a page one block of compressed data that no browser runs.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import logging
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from carbonlens.errors import InputFileError, MissingExtraError
from carbonlens.render.environment import need

if TYPE_CHECKING:
    from weasyprint import Attachment

REPORT_JSON: Final = "report.json"
DATA_ID: Final = "carbonlens-report"
DATA_TYPE: Final = "application/vnd.carbonlens.report+gzip"
_UNDATED: Final = datetime(1980, 1, 1, tzinfo=UTC)
LARGEST_BYTES: Final = 1 << 29
"""A report, or what is packed in it, that is larger than this is refused: nothing we write is."""

_DENSEST: Final = 256
"""Unpacked bytes to a packed one. JSON of runs has some 15; what has hundreds is made to fill memory."""

_SMALL_BYTES: Final = 1 << 24
"""Up to here no ratio counts: a report of few runs that read alike packs well."""

_MOST_PAGES: Final = 2_000
"""Pages of a PDF that are read: no report has as many, and a page may be listed any number of times."""

_MOST_NODES: Final = 1_000
"""Nodes of the tree of embedded files: ours has one, and a node may be listed under itself."""

_CHUNK: Final = 1 << 20

Relationship = Literal["Source", "Data", "Supplement"]


class Enclosed(msgspec.Struct, frozen=True, kw_only=True):
    """A file inside a report.

    Attributes:
        name: File name.
        content: Its bytes.
        description: What it is, in words.
        relationship: What it is to the report (ISO 32000-2, AFRelationship).
    """

    name: str
    content: bytes
    description: str
    relationship: Relationship = "Data"


Enclosing: TypeAlias = tuple[Enclosed, ...] | Callable[[], tuple[Enclosed, ...]]
"""Files inside a report, or what waits until they are made."""


def given(enclosed: Enclosing) -> tuple[Enclosed, ...]:
    """Return the files.

    Args:
        enclosed: They, or what waits for them.
    """
    return enclosed() if callable(enclosed) else enclosed


def as_pdf_attachments(files: tuple[Enclosed, ...], made_us: int | None) -> list[Attachment]:
    """Return the files as WeasyPrint embeds them, dated with the report and not with the clock.

    They go by their names: a reader finds one by halves (ISO 32000-1, 7.9.6), and WeasyPrint sorts none.

    Args:
        files: What to embed.
        made_us: What the report is dated with, in UTC microseconds.
    """
    attachment = need("weasyprint").Attachment
    moment = _UNDATED if made_us is None else datetime.fromtimestamp(made_us / 1e6, tz=UTC)
    return [
        attachment(
            string=file.content,
            name=file.name,
            description=file.description,
            created=moment,
            modified=moment,
            relationship=file.relationship,
        )
        for file in sorted(files, key=lambda f: f.name)
    ]


def as_data_block(content: bytes) -> str:
    """Return a page's data as text without any character that HTML takes for markup.

    Args:
        content: Any bytes.
    """
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=9) as file:
        file.write(content)
    return base64.b64encode(packed.getvalue()).decode("ascii")


def of_page(page: str, where: str) -> bytes:
    """Return the data that a page carries.

    Args:
        page: The HTML.
        where: The file, for the error.

    Raises:
        InputFileError: If it carries none or more than one, or its data are damaged.
    """
    found = re.findall(
        rf'<script type="{re.escape(DATA_TYPE)}" id="{DATA_ID}">([A-Za-z0-9+/=\s]*)</script>', page
    )
    if not found:
        raise _without_data(where)
    if len(found) > 1:
        raise InputFileError(
            "carries the data of more than one report",
            where=where,
            mend="take the page as carbonlens wrote it",
        )
    try:
        return _unpacked(base64.b64decode(found[0], validate=False), zlib.MAX_WBITS | 16)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputFileError(
            "the data inside it are damaged", where=where, mend="take the page as carbonlens wrote it"
        ) from error


def of_pdf(content: bytes, where: str) -> Mapping[str, bytes]:
    """Return the files embedded in a PDF by name.

    Args:
        content: The PDF.
        where: The file, for the error.

    Raises:
        InputFileError: If it is no readable PDF, or has no report inside.
        MissingExtraError: If pypdf is not installed.
    """
    pypdf = need("pypdf")
    with _reading(where):
        files = dict(_embedded(pypdf.PdfReader(io.BytesIO(content))))
    if REPORT_JSON not in files:
        raise _without_data(where)
    return files


def text_of_pdf(content: bytes, where: str) -> str:
    """Return the text of all pages of a PDF.

    Args:
        content: The PDF.
        where: The file, for the error.

    Raises:
        InputFileError: If a page cannot be read, or there are more than any report has.
        MissingExtraError: If pypdf is not installed.
    """
    pypdf = need("pypdf")
    with _reading(where):
        pages = list(islice(pypdf.PdfReader(io.BytesIO(content)).pages, _MOST_PAGES + 1))
        if len(pages) > _MOST_PAGES:
            raise ValueError("more pages than any report")
        return "\n".join(page.extract_text() for page in pages)


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Refuse what pypdf cannot read, and keep to itself the hundreds of lines it may log about it."""
    log = logging.getLogger("pypdf")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except MissingExtraError:
        raise
    except Exception as error:  # a hostile file makes it trip over whatever it took for granted
        raise InputFileError(
            "is no PDF that can be read", where=where, mend="take the file as carbonlens wrote it"
        ) from error
    finally:
        log.setLevel(level)


def _embedded(reader: Any) -> Iterator[tuple[str, bytes]]:  # noqa: ANN401  # pypdf is imported late
    """Yield the embedded files by the tree of their names (ISO 32000-2, 7.9.6 and 7.11.4)."""
    root: Any = reader.trailer["/Root"]
    if "/Names" not in root or "/EmbeddedFiles" not in root["/Names"]:
        return
    nodes = [root["/Names"]["/EmbeddedFiles"]]
    for _ in range(_MOST_NODES):
        if not nodes:
            return
        node = nodes.pop()
        nodes += [kid.get_object() for kid in _held(node, "/Kids")]
        names = _held(node, "/Names")
        for name, file in zip(names[::2], names[1::2], strict=True):
            held = file.get_object()["/EF"]
            yield str(name), _content(held["/F"] if "/F" in held else held["/UF"])
    raise ValueError("more names than any report")


def _held(node: Any, name: str) -> Any:  # noqa: ANN401  # likewise
    """Return an entry; pypdf's ``get`` would give the reference to it."""
    return node[name] if name in node else ()  # noqa: SIM401  # see above


def _content(stream: Any) -> bytes:  # noqa: ANN401  # likewise
    """Return what an embedded file holds.

    pypdf unpacks 75 MB at most (7.1); a report of 100,000 runs has more.
    """
    stream = stream.get_object()
    if _held(stream, "/Filter") in ("/FlateDecode", ["/FlateDecode"]) and "/DecodeParms" not in stream:
        return _unpacked(stream._data, zlib.MAX_WBITS)
    content: bytes = stream.get_data()
    return content


def _unpacked(packed: bytes, window: int) -> bytes:
    """Return what is packed, as long as it is no more than a report may have.

    Raises:
        ValueError: If it is more, or cut short.
        zlib.error: If it is damaged.
    """
    most = min(LARGEST_BYTES, max(_SMALL_BYTES, _DENSEST * len(packed)))
    reading = zlib.decompressobj(window)
    parts: list[bytes] = []
    size = 0
    rest = packed
    while not reading.eof:
        part = reading.decompress(rest, _CHUNK)
        rest = reading.unconsumed_tail
        if not (part or rest or reading.eof):
            raise ValueError("cut short")
        parts.append(part)
        size += len(part)
        if size > most:
            raise ValueError("larger than any report")
    return b"".join(parts)


def _without_data(where: str) -> InputFileError:
    return InputFileError(
        "carries nothing to verify it by",
        where=where,
        mend="verify a report that `carbonlens report`, `bench --report` or `demo` wrote",
    )
