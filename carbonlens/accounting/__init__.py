"""Amounts from energy: boundary, emissions, embodied emissions and cost; no I/O."""
