"""Local times of one plain form, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carbonlens.importers.times import FIRST_YEAR, LAST_YEAR

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FORM: Final = "dddd-dd-dd?dd:dd:dd"
"""``2026-03-01T10:00:00``, or with a space."""


PLAIN_LENGTH: Final = len(_FORM)


def seconds_of_letters(
    letters: npt.NDArray[np.uint8], good: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return seconds since 1970 of local times, and which of them are of the plain form.

    Args:
        letters: Of such as ``2026-03-01T10:00:00`` the first bytes of all, their second bytes and so on.
        good: Which of them are that long; the letters of others mean nothing.
    """
    import numpy as np

    good = good.copy()
    # What is below "0" wraps around to above 9.
    digits = letters - np.uint8(ord("0"))
    for place, form in enumerate(_FORM):
        if form == "d":
            good &= digits[place] <= 9
        elif form == "?":
            good &= (letters[place] == ord("T")) | (letters[place] == ord(" "))
        else:
            good &= letters[place] == ord(form)

    def number(first: int, count: int) -> npt.NDArray[np.int64]:
        whole = digits[first].astype(np.int64)
        for place in range(first + 1, first + count):
            whole = whole * 10 + digits[place]
        return np.where(good, whole, 0)

    year, month, day = number(0, 4), number(5, 2), number(8, 2)
    hour, minute, second = number(11, 2), number(14, 2), number(17, 2)
    good &= (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1)
    good &= (hour < 24) & (minute < 60) & (second < 60)
    months = (np.where(good, year, 1971) - 1970) * 12 + np.where(good, month, 1) - 1
    begin = months.astype("datetime64[M]").astype("datetime64[D]")
    end = (months + 1).astype("datetime64[M]").astype("datetime64[D]")
    good &= day <= (end - begin).astype(np.int64)
    days = begin.astype(np.int64) + day - 1
    return days * 86_400 + hour * 3600 + minute * 60 + second, good
