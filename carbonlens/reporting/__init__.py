"""Views and machine-readable shapes of results; no I/O, no layout."""
