"""The company's report of its last quarter, made once for all tests of a session, in every worker."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec
import pytest

from carbonlens.app.sustainability import Gathered, gather
from carbonlens.app.sustainability_enclosed import Wanted
from carbonlens.app.sustainability_report import Material, material, rendered
from tests.app import company_case

QUARTER = "2026Q3"
FORMATS = ("html", "pdf", "xlsx", "md", "json")


class CompanyReport:
    """The ledger of the company, what its report is made of, and the report by format.

    Each part is made when a test first asks for it, and lies in a folder that all workers share.
    """

    def __init__(self, folder: Path) -> None:
        """Make nothing yet.

        Args:
            folder: Shared by the workers of one session.
        """
        self._folder = folder
        folder.mkdir(exist_ok=True)

    @property
    def places(self) -> Mapping[str, Path]:
        """Ledger, inventory and factors, as the use cases take them."""
        company = self._folder / "company"
        self._once("company.made", lambda: str(company_case.make(company)).encode())
        return {
            "ledger": company / "ledger",
            "inventory": company / "inventory",
            "factors": company / "factors.csv",
        }

    @cached_property
    def material(self) -> Material:
        """What the renderers take; records travel though they name the company's hosts."""
        held = self._once("gathered.pickle", self._gathered)
        given = material(pickle.loads(held))  # noqa: S301 - of this session's own folder
        return msgspec.structs.replace(given, wanted=Wanted(host_names=True))

    def file(self, format_: str) -> Path:
        """The report in a format."""
        self._once(f"r.{format_}", lambda: rendered(self.material, format_))
        return self._folder / f"r.{format_}"

    def _gathered(self) -> bytes:
        found: Gathered = gather(QUARTER, now_us=company_case.NOW_US, **self.places)
        return pickle.dumps(found)

    def _once(self, name: str, make) -> bytes:
        """Return the content of a file that the first who asks makes, while others wait."""
        path = self._folder / name
        with (self._folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                made = make()
                path.with_suffix(".part").write_bytes(made)
                path.with_suffix(".part").rename(path)
        return path.read_bytes()


def company_report_of(factory: pytest.TempPathFactory) -> CompanyReport:
    """Return the report of this session.

    Args:
        factory: Of temporary folders; those of all workers lie in one.
    """
    base = factory.getbasetemp()
    return CompanyReport((base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "company-report")
