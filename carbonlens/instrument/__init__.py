"""Wrappers around work that is to be measured."""

from carbonlens._deferred import load_records_library

load_records_library()  # before the first module that holds records: the user's program starts by it
