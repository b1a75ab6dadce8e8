"""What differs between two sets of factors: a user's and the bundled, or an old and a new edition."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from carbonlens.domain.factor_row import FactorRow
from carbonlens.factors.checks import counts_the_same


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that both sets have, with another value.

    Attributes:
        old, new: The two rows; they count the same for the same subject and period.
    """

    old: FactorRow
    new: FactorRow

    @property
    def ratio(self) -> float | None:
        """New over old; ``None`` when the old one is zero."""
        return float(self.new.value / self.old.value) if self.old.value else None

    @property
    def size(self) -> float:
        """How far the two are apart, whichever is larger."""
        return math.inf if not self.ratio else abs(math.log(self.ratio))


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two sets.

    Attributes:
        changed: Figures with another value, the largest change first.
        same: How many figures both have alike.
        only_old, only_new: Rows without a counterpart.
    """

    changed: tuple[Change, ...]
    same: int
    only_old: tuple[FactorRow, ...]
    only_new: tuple[FactorRow, ...]


def difference(old: Iterable[FactorRow], new: Iterable[FactorRow]) -> Difference:
    """Return what differs.

    Rows of one id are one figure. Otherwise a row is compared with each row of the other set
    that counts the same for the same subject and period, whatever its source; what the newer
    row does not say it does not tell apart.

    Args:
        old: The set that was.
        new: The set that is, or the user's.
    """
    before, after = list(old), list(new)
    by_id = {row.factor_id: row for row in before}
    by_key: dict[tuple[str, str, str], list[FactorRow]] = {}
    for row in before:
        by_key.setdefault((row.kind, row.subject, row.period), []).append(row)
    changed: list[Change] = []
    met: set[str] = set()
    same, only_new = 0, []
    for row in after:
        twin = by_id.get(row.factor_id)
        near = by_key.get((row.kind, row.subject, row.period), [])
        peers = [twin] if twin is not None else [peer for peer in near if counts_the_same(row, peer)]
        met.update(peer.factor_id for peer in peers)
        different = [Change(old=peer, new=row) for peer in peers if peer.value != row.value]
        changed += different
        same += len(peers) - len(different)
        if not peers:
            only_new.append(row)
    return Difference(
        changed=tuple(sorted(changed, key=lambda c: (-c.size, c.new.factor_id))),
        same=same,
        only_old=tuple(row for row in before if row.factor_id not in met),
        only_new=tuple(only_new),
    )
