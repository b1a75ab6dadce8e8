"""Importers: one module a format, each claiming files by their content."""
