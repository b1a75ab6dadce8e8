"""Contracts that every implementation of a kind keeps."""
