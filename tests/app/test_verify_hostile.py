"""Verify: whatever a file says, it holds, does not, or is refused in one line; nothing is a traceback."""

from __future__ import annotations

import base64
import copy
import gzip
import io
import os
import random
import re

import msgspec
import pikepdf
import pytest

from carbonlens.app.compare import computed
from carbonlens.app.report import report
from carbonlens.app.verify import verify
from carbonlens.errors import InputFileError
from tests.app.test_verify import evidence

MUTATIONS = 300
"""Some minutes; CARBONLENS_MUTATIONS sets another number."""
ODD = [
    None,
    True,
    -1,
    0,
    1e308,
    -1e308,
    10**400,
    "",
    "x",
    "1e400",
    "NaN",
    "-1",
    "\x1b[2J\u202e",
    [],
    {},
    [[]],
    5e-324,
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    given = evidence()
    folder = tmp_path_factory.mktemp("report")
    return report(computed(given), formats=("html", "pdf", "json"), out_dir=folder, evidence=given)


@pytest.fixture(scope="module")
def shape(written):
    return msgspec.json.decode(written["json"].read_bytes())


def outcome(file):
    """What comes of a file; anything but a result or one of our errors is a fault."""
    try:
        return "holds" if verify(file).holds else "differs"
    except InputFileError as error:
        return "refused" if "\n" not in str(error) else "told in several lines"


def place(*path):
    def change(shape, value):
        for key in path[:-1]:
            shape = shape[key]
        shape[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("figures", "total.reduction_energy", "value"), 10**400),
        (("comparison", "steps"), [10**400]),
        (("evidence", "study", "margin"), -1),
        (("evidence", "vector", "pue"), 1e308),
        (("evidence", "study", "steps"), []),
        (("evidence", "made_with"), None),
        (("evidence", "made_with", "libraries"), {"\x1b[31m": "\x1b[2J"}),
        (("evidence", "runs", 0, "end_us"), 2**62),
        (("evidence", "runs_left_out"), -1),
        (("sections", 0, "blocks"), {"figures": [None, {}], "x": {"figures": [[]]}}),
        (("sections", 0, "blocks"), [[[[[]]]]]),
        (("example",), [1]),
    ],
)
def test_what_no_reader_of_ours_lets_in_is_no_traceback(tmp_path, shape, path, value):
    data = copy.deepcopy(shape)
    data["evidence"]["made_with"]["carbonlens"] = "0.0.1"
    place(*path)(data, "@@")
    text = msgspec.json.encode(data)
    said = str(value).encode() if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, list) and value == [10**400]:
        said = b"[1" + b"0" * 400 + b"]"
    file = tmp_path / "report.json"
    file.write_bytes(text.replace(b'"@@"', said or msgspec.json.encode(value)))
    assert outcome(file) in ("refused", "differs", "holds")


@pytest.mark.parametrize("name", ["margin", "pue"])
def test_evidence_that_nothing_follows_from_is_refused_by_its_file(tmp_path, shape, name):
    data = copy.deepcopy(shape)
    if name == "margin":
        data["evidence"]["study"]["margin"] = -1
    else:
        data["evidence"]["vector"]["pue"] = 1e308
    file = tmp_path / "report.json"
    file.write_bytes(msgspec.json.encode(data))
    with pytest.raises(InputFileError, match=r"report\.json: cannot be computed again"):
        verify(file)


@pytest.mark.parametrize("kind", ["folder", "pipe", "none", "name"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    file = tmp_path / ("a\x00b" if kind == "name" else "report.json")
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    with pytest.raises(InputFileError):
        verify(file)


@pytest.mark.parametrize("part", ["file", "tables"])
def test_what_is_larger_than_any_report_is_refused(tmp_path, monkeypatch, shape, part):
    from carbonlens.app import verify_reading
    from carbonlens.render import attachments

    if part == "file":
        monkeypatch.setattr(attachments, "LARGEST_BYTES", 1_000)
    else:
        monkeypatch.setattr(verify_reading, "_MOST_SAID", 1_000)
    file = tmp_path / "report.json"
    file.write_bytes(msgspec.json.encode(shape))
    with pytest.raises(InputFileError, match="larger than any report"):
        verify(file)


def spots(node, path=()):
    """Paths of all values in a shape."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            yield from spots(value, (*path, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield (*path, number)
            yield from spots(value, (*path, number))


def odd_data(shape, chance):
    """A report's data with one to three values that are no such values."""
    data = copy.deepcopy(shape)
    data["evidence"]["made_with"]["carbonlens"] = "0.0.1"
    for _ in range(chance.randint(1, 3)):
        part = chance.choice(("evidence", "evidence", "sections", "figures", "comparison"))
        path = chance.choice([p for p in spots({part: data.get(part)}) if len(p) > 1] or [(part,)])
        value = chance.choice(ODD)
        place(*path)(data, copy.deepcopy(value) if value != 10**400 else 2**63)
    return data


def cut(content, chance):
    """Bytes with a few of them changed, doubled or gone."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(made))
        kind = chance.randrange(4)
        if kind == 0:
            made[at] = chance.randrange(256)
        elif kind == 1:
            del made[at : at + chance.randint(1, 200)]
        elif kind == 2:
            made[at:at] = made[at : at + chance.randint(1, 200)]
        else:
            made[at:at] = chance.choice(
                (b"<svg>", b"<!--", b"</", b"/Kids", b"endobj", b"\xff\x00", b"9" * 500)
            )
    return bytes(made)


def mutated(kind, content, shape, chance):
    """One file of many: its data odd, or its bytes cut."""
    if chance.random() < 0.4:
        return cut(content, chance)
    data = msgspec.json.encode(odd_data(shape, chance))
    if kind == "json":
        return data
    if kind == "html":
        packed = re.search(rb'id="carbonlens-report">([^<]*)<', content)[1]
        return content.replace(packed, base64.b64encode(gzip.compress(data, 1)))
    pdf = pikepdf.open(io.BytesIO(content))
    pdf.attachments["report.json"] = pikepdf.AttachedFileSpec(pdf, data, filename="report.json")
    held = io.BytesIO()
    pdf.save(held)
    return held.getvalue()


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(("kind", "share"), [("json", 0.8), ("html", 0.15), ("pdf", 0.05)])
def test_no_mutation_of_a_report_is_a_traceback(tmp_path, written, shape, kind, share):
    chance = random.Random(10)  # noqa: S311  # files to try, no secret
    content = written[kind].read_bytes()
    file = tmp_path / f"report.{kind}"
    seen = {"holds": 0, "differs": 0, "refused": 0}
    for number in range(int(int(os.environ.get("CARBONLENS_MUTATIONS", MUTATIONS)) * share)):
        file.write_bytes(mutated(kind, content, shape, chance))
        try:
            seen[outcome(file)] += 1
        except Exception as error:  # whatever it is, the file that brought it about is told
            kept = tmp_path / f"found-{number}.{kind}"
            kept.write_bytes(file.read_bytes())
            raise AssertionError(f"mutation {number}, kept in {kept}") from error
    assert seen["refused"]
    assert seen["differs"]
