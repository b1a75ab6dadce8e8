"""Tests of the digits study."""
