#!/bin/sh
# A command, measured while it runs, and its record: sh docs/examples/run_command.sh
carbonlens run --step squares --unit number --units 2000000 -- python "$(dirname "$0")/bench/base.py" || exit
exec carbonlens runs
