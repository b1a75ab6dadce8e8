"""Runnable studies: real work, prepared and measured on this machine."""
