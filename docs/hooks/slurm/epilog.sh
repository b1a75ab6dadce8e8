#!/bin/sh
# Epilog= of slurm.conf: runs as root on each node of a job, after its last step.
/opt/carbonlens/hooks/node-record stop || :
exit 0
