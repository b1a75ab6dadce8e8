#!/usr/bin/env bash
# Make .venv with everything the demo and the tests need. Quick when nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
stamp=.venv/.installed

say() { printf '%s\n' "$*" >&2; }

# Debian and Ubuntu package -> the file that tells it is there.
need_packages() {
  local missing=() libraries
  # Read once: under pipefail, a grep that leaves a pipe early looks like a failure.
  libraries=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null || true)
  have() { grep -q "$1" <<<"$libraries"; }
  have 'libpango-1\.0\.so\.0' || missing+=(libpango-1.0-0)
  have 'libpangoft2-1\.0\.so\.0' || missing+=(libpangoft2-1.0-0)
  have 'libharfbuzz-subset\.so\.0' || missing+=(libharfbuzz-subset0)
  "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  printf '%s\n' "${missing[@]:-}"
}

install_packages() {
  local packages
  packages=$(need_packages | tr '\n' ' ' | sed 's/ *$//')
  [ -z "$packages" ] && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "setup: installing $packages"
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    return 0
  fi
  say "setup: these system packages are missing. As root, run:"
  say "    apt-get install $packages"
  exit 1
}

check_python() {
  command -v "$python" >/dev/null || { say "setup: $python not found; install Python 3.11 or newer"; exit 1; }
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { say "setup: $("$python" -V) is too old; set PYTHON to Python 3.11 or newer"; exit 1; }
}

fingerprint() { cat pyproject.toml constraints.txt scripts/setup.sh | cksum; }

check_python
install_packages
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ]; then
  exit 0
fi
say "setup: installing Python packages into .venv (a few minutes the first time)"
rm -f "$stamp"
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
.venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[all]' --group dev
# axe-core, which tests/browser run in the page: the package brings its script along, and Playwright, not
# needed here, is what it would pull in.
.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --upgrade --target .venv/share/axe \
  'axe-playwright-python==0.1.8'
fingerprint > "$stamp"
