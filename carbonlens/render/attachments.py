"""Attachments: what a report carries so that anyone can compute it again.

In a PDF they are embedded files, in a page one block of compressed data that no browser runs.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.render.environment import need

if TYPE_CHECKING:
    from weasyprint import Attachment

REPORT_JSON: Final = "report.json"
DATA_ID: Final = "carbonlens-report"
DATA_TYPE: Final = "application/vnd.carbonlens.report+gzip"
_UNDATED: Final = datetime(1980, 1, 1, tzinfo=UTC)
_LARGEST_BYTES: Final = 1 << 30
"""Unpacked data of a report larger than this is refused: nothing we write is."""

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


def as_pdf_attachments(files: tuple[Enclosed, ...], made_us: int | None) -> list[Attachment]:
    """Return the files as WeasyPrint embeds them, dated with the report and not with the clock.

    Args:
        files: What to embed.
        made_us: What the report is dated with, in UTC microseconds.
    """
    attachment = need("weasyprint").Attachment
    moment = _UNDATED if made_us is None else datetime.fromtimestamp(made_us / 1e6, tz=UTC)
    return [
        attachment(
            string=file.content,
            base_url="",
            name=file.name,
            description=file.description,
            created=moment,
            modified=moment,
            relationship=file.relationship,
        )
        for file in files
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
        InputFileError: If it carries none, or its data are damaged.
    """
    found = re.search(
        rf'<script type="{re.escape(DATA_TYPE)}" id="{DATA_ID}">([A-Za-z0-9+/=\s]*)</script>', page
    )
    if found is None:
        raise _without_data(where)
    try:
        return _unpacked(base64.b64decode(found[1], validate=False))
    except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as error:
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
    damaged = (
        pypdf.errors.PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        OSError,
    )
    try:
        files = dict(_embedded(pypdf.PdfReader(io.BytesIO(content))))
    except damaged as error:
        raise InputFileError(
            "is no PDF that can be read", where=where, mend="take the file as carbonlens wrote it"
        ) from error
    if REPORT_JSON not in files:
        raise _without_data(where)
    return files


def text_of_pdf(content: bytes) -> str:
    """Return the text of all pages of a PDF that ``of_pdf`` could read.

    Args:
        content: The PDF.
    """
    reader = need("pypdf").PdfReader(io.BytesIO(content))
    return "\n".join(page.extract_text() for page in reader.pages)


def _embedded(reader: object) -> Iterator[tuple[str, bytes]]:
    for name, contents in reader.attachments.items():  # type: ignore[attr-defined]  # pypdf is imported late
        yield name, contents[0]


def _unpacked(packed: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise ValueError("larger than any report")
    return content


def _without_data(where: str) -> InputFileError:
    return InputFileError(
        "carries nothing to verify it by",
        where=where,
        mend="verify a report that `carbonlens report`, `bench --report` or `demo` wrote",
    )
