"""Values of a TOML file: where only some are known, a wrong one is refused with those."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from carbonlens.errors import ConfigError
from carbonlens.inventory.toml_file import convert


class Part(msgspec.Struct, kw_only=True):
    """A table within a file."""

    how: Literal["one", "two"] | None = None


class File(msgspec.Struct, kw_only=True):
    """A file with a value that is one of a list in every place that one may stand in."""

    top: Literal["a", "b"] = "a"
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] = {}
    words: list[Literal["x", "y"]] = []


@pytest.mark.parametrize(
    ("tables", "what", "mend"),
    [
        ({"top": "c"}, "top: 'c' is none of its values", "give one of 'a', 'b'"),
        ({"part": {"how": "six"}}, "part.how: 'six'", "give one of 'one', 'two'"),
        ({"parts": [{}, {"how": "six"}]}, "how: 'six'", "give one of 'one', 'two'"),
        ({"by_name": {"n": {"how": "six"}}}, "how: 'six'", "give one of 'one', 'two'"),
        ({"words": ["x", "z"]}, "'z' is none of its values", "give one of 'x', 'y'"),
    ],
    ids=["on top", "in a table", "in a list of tables", "in a table of tables", "in a list"],
)
def test_a_value_that_is_unknown_is_refused_with_those_that_are_known(tables, what, mend):
    with pytest.raises(ConfigError) as refused:
        convert(tables, File, where="f.toml")
    assert what in refused.value.what
    assert refused.value.mend == mend


def test_a_value_of_a_wrong_kind_is_said_as_before():
    with pytest.raises(ConfigError, match=r"part\.how: expected `str") as refused:
        convert({"part": {"how": 3}}, File, where="f.toml")
    assert refused.value.mend == "mend that key"
