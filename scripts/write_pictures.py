#!/usr/bin/env python3
"""Write docs/images: pages of the report of a demo, as the README shows them.

The demo measures on this machine, so its figures, and which step wins, differ from one run to the next;
its factors and prices are examples, and the pages say so.

python -m scripts.write_pictures [DEMO_FOLDER]

DEMO_FOLDER holds what `carbonlens demo -o DEMO_FOLDER` wrote; without one a demo runs first (a minute).
Needs pdftoppm (Debian: poppler-utils).
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from pypdf import PdfReader

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
PICTURES: Final = {
    "business-case": "Decision asked",
    "engineering-comparison": "Latency of single calls",
}
"""File name by what is printed on the page that it shows, and on no page before it."""

MOST_BYTES: Final = 150_000
_DPI: Final = 100
_COLOURS: Final = 128
"""Pages are of a few colours and their shades: a palette halves the file. Fewer would change rare colours."""


def main(arguments: list[str]) -> None:
    """Write the pictures of a demo's report."""
    if arguments:
        write(Path(arguments[0]) / "report.pdf")
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.executable).with_name("carbonlens"), "demo", "-o", folder], check=True)
        write(Path(folder) / "report.pdf")


def write(report: Path, folder: Path = FOLDER) -> None:
    """Write the pictures.

    Args:
        report: The PDF.
        folder: Where to.

    Raises:
        SystemExit: If a page is not there, or its picture too large for a README.
    """
    texts = [page.extract_text() for page in PdfReader(report).pages]
    for name, words in PICTURES.items():
        found = [number for number, text in enumerate(texts, start=1) if words in text]
        if not found:
            raise SystemExit(f"{report}: no page says {words!r}")
        picture = of_page(report, found[0])
        if len(picture) > MOST_BYTES:
            raise SystemExit(f"{name}.png would have {len(picture)} bytes, more than {MOST_BYTES}")
        (folder / f"{name}.png").write_bytes(picture)


def of_page(report: Path, page: int) -> bytes:
    """Return a page as a small PNG."""
    command = ["pdftoppm", "-r", str(_DPI), "-f", str(page), "-l", str(page), "-png", str(report)]
    drawn = Image.open(io.BytesIO(subprocess.run(command, check=True, capture_output=True).stdout))
    small = drawn.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    made = io.BytesIO()
    small.save(made, format="PNG", optimize=True)
    return made.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
