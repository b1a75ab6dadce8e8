"""Tests of the rendered HTML and PDF."""
