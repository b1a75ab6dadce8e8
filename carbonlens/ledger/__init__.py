"""The ledger: immutable run records on disk, read back through one view."""
