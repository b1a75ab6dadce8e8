"""Comparison of arms: effects, attribution, gates, decision and break-even; no I/O."""
