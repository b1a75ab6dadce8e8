#!/bin/sh
# TaskEpilog= of slurm.conf, or srun --task-epilog: runs as the user after each task.
hooks=${CARBONLENS_HOOKS:-/opt/carbonlens/hooks}
if [ "${CARBONLENS_NODE_RECORD:-}" = 1 ] && [ "${SLURM_LOCALID:-}" = 0 ] && [ -r "$hooks/user_record.sh" ]; then
    # shellcheck source=user_record.sh
    . "$hooks/user_record.sh"
    "$hooks/node-record" stop || :
fi
exit 0
