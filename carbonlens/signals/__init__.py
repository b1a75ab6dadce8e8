"""Pure turning of readings into energy: counters, power, CPU time; and latency sketches."""
