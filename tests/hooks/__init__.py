"""Tests of the scheduler hooks in ``docs/hooks``."""
