"""Tests of ``docs/methodology``: its examples, its formulas, and that none of the code's is missing."""
