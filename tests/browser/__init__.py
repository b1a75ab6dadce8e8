"""Tests of the finished HTML in a real browser; skipped where there is none."""
