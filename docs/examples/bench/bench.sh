#!/bin/sh
# Two scripts, compared in interleaved rounds: sh docs/examples/bench/bench.sh
cd "$(dirname "$0")" || exit
exec carbonlens bench --baseline "python base.py" --candidate "python opt.py" --units 2000000 --unit number --window 0.2 --rounds 10 "$@"
