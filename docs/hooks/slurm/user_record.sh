#!/bin/sh
# Settings of a node record that a user keeps without the site's help; read by task_prolog.sh
# and task_epilog.sh. One record a step: its ledger is the user's own.
CARBONLENS_HOOK_STEP=${SLURM_STEP_ID:-0}
# A task may have no HOME: then its folder is the home.
home=${HOME:-$(pwd || echo .)}
# Not in /tmp, where others could lay out links; the home may be that of many hosts.
CARBONLENS_HOOK_DIR=${XDG_RUNTIME_DIR:-$home/.cache}/carbonlens-hooks/$(uname -n || echo host)
CARBONLENS_HOOK_LEDGER=${CARBONLENS_LEDGER:-${SLURM_SUBMIT_DIR:-$home}/.carbonlens}
CARBONLENS_HOOK_STATE=${XDG_STATE_HOME:-}
CARBONLENS_HOOK_SOURCES=${CARBONLENS_HOOK_SOURCES:-${hooks:-.}/hook-sources.toml}
export CARBONLENS_HOOK_STEP CARBONLENS_HOOK_DIR CARBONLENS_HOOK_LEDGER CARBONLENS_HOOK_STATE
export CARBONLENS_HOOK_SOURCES
