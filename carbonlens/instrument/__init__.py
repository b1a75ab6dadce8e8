"""Wrappers around work that is to be measured."""
