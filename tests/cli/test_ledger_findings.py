"""Findings of ``ledger verify`` are printed whole: what stands last is the mend."""

import pytest

from carbonlens.cli import ledger_view
from carbonlens.domain.finding import Finding
from carbonlens.ledger.verify import Check, Verification


def printed(capsys, findings):
    result = Verification(
        records=1, counting=1, unread_files=0, checks=(Check(name="n", holds="h", findings=tuple(findings)),)
    )
    ledger_view.print_verification(result, json=False)
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("words", [1, 20, 60, 200])
@pytest.mark.parametrize("count", [1, 3, 9])
def test_each_is_whole_or_counted_among_the_others(capsys, words, count):
    findings = [
        Finding(
            code="CL517",
            severity="info",
            message=f"m{i} " + "word " * words,
            file="a/b.json",
            mend=f"mend {i}",
        )
        for i in range(count)
    ]
    err = printed(capsys, findings)
    shown = [i for i in range(count) if f": m{i} " in err]
    assert shown
    assert all(f"(mend {i})" in err for i in shown)
    left = count - len(shown)
    assert (f"... and {left} more" in err) == (left > 0)
