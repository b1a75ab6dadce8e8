"""Checks of what tables, cards and runs state; each returns Findings and changes nothing."""
