"""Frozen records that every room speaks in; no I/O, no clock."""
