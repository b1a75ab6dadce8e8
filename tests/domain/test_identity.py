"""Hashes of content are SHA-256, whichever implementation is the quicker to have."""

import hashlib
import subprocess
import sys

import pytest

from carbonlens.domain.identity import sha256_hex


@pytest.mark.parametrize("length", [0, 1, 55, 56, 64, 65_535, 65_536, 65_537, 300_000])
def test_a_hash_is_that_of_the_standard_library(length):
    content = bytes(k % 251 for k in range(length))
    assert sha256_hex(content) == hashlib.sha256(content).hexdigest()


NONE_OF_ITS_OWN = """
import sys
sys.modules["_sha2"] = sys.modules["_sha256"] = None
from carbonlens.domain.identity import sha256_hex
print(sha256_hex(b"abc"))
"""


def test_an_interpreter_without_one_of_its_own_hashes_the_same():
    done = subprocess.run(
        [sys.executable, "-c", NONE_OF_ITS_OWN], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == hashlib.sha256(b"abc").hexdigest()
