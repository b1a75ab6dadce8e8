"""The command line: one module a command, each a thin skin over ``app``."""
