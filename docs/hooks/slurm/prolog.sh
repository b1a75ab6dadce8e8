#!/bin/sh
# Prolog= of slurm.conf: runs as root on each node of a job, before its first step.
/opt/carbonlens/hooks/node-record start || :
exit 0
