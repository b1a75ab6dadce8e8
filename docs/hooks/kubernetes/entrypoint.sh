#!/bin/sh
# Entrypoint of a container: measures the command that the pod's args name.
# The pod's labels become tags by the downward API; the command's exit code is the container's.
#
# Nothing here stops the command: what cannot be read is left out.
set -u
labels=${CARBONLENS_POD_LABELS:-/etc/podinfo/labels}
carbonlens=${CARBONLENS_COMMAND:-carbonlens}
if ! "$carbonlens" --version >/dev/null 2>&1 </dev/null; then
    echo "carbonlens: $carbonlens does not work here; the command runs unmeasured" >&2
    exec "$@"
fi
first=$#    # the command's own words come first, and go to the end

set -- "$@" --ledger "${CARBONLENS_LEDGER:-/carbonlens/ledger}"
if [ -r "$labels" ]; then
    # A line is key="value"; the kubelet leaves out the last line break.
    while IFS='=' read -r key value || [ -n "$key" ]; do
        value=${value#\"}
        [ -n "$key" ] && set -- "$@" --tag "$key=${value%\"}"
    done <"$labels"
fi
for name in POD_NAMESPACE POD_NAME NODE_NAME; do
    eval "value=\${$name:-}"
    [ -n "$value" ] && set -- "$@" --tag "$(echo "$name" | tr '[:upper:]_' '[:lower:].')=$value"
done
set -- "$@" --

# Rotate: options first, then the command.
while [ "$first" -gt 0 ]; do
    set -- "$@" "$1"
    shift
    first=$((first - 1))
done
exec "$carbonlens" run "$@"
