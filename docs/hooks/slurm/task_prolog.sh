#!/bin/sh
# TaskProlog= of slurm.conf, or srun --task-prolog: runs as the user before each task.
# What it prints as "export NAME=value" becomes part of the task's environment.
#
# Where the site's Prolog holds a record of this node, the runs inside become its parts.
# Where it does not, and the user asks for it by CARBONLENS_NODE_RECORD=1, local rank 0
# holds one of the user's own; TaskEpilog ends it.
#
# Whatever is missing, and whatever options the site's shell has (-e, -u), it ends with 0: a
# TaskProlog that fails takes its task along.
folder=${CARBONLENS_HOOK_DIR:-/run/carbonlens}
hooks=${CARBONLENS_HOOKS:-/opt/carbonlens/hooks}
window=$folder/${SLURM_JOB_ID:-none}

run_id=''
if [ -e "$window.parent" ] && [ -r "$window.run" ]; then
    read -r run_id _ <"$window.run" || :
fi
case $run_id in
*[!0-9a-f-]*) ;;
?*) echo "export CARBONLENS_RUN_ID=$run_id" ;;
'')
    if [ "${CARBONLENS_NODE_RECORD:-}" = 1 ] && [ "${SLURM_LOCALID:-}" = 0 ] && [ -r "$hooks/user_record.sh" ]; then
        # shellcheck source=user_record.sh
        . "$hooks/user_record.sh"
        "$hooks/node-record" start >/dev/null || :
    fi
    ;;
esac
exit 0
