#!/bin/sh
# One virtual environment per contender, under .bench (or $TRAMAI_BENCH_DIR): tramai itself from its wheel, and each peer.
#   setup.sh           all of them; what is there is kept, tramai is installed anew
#   setup.sh tramai    tramai alone
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
to=${TRAMAI_BENCH_DIR:-$root/.bench}
mkdir -p "$to"

environment() {
    name=$1
    shift
    [ -x "$to/$name/bin/python" ] || python3 -m venv "$to/$name"
    if "$to/$name/bin/pip" install -q --disable-pip-version-check "$@" >"$to/$name.log" 2>&1; then
        echo "$name: ready"
    else
        echo "$name: failed, see $to/$name.log" >&2
    fi
}

environment tramai "$root[postgres]"
# Again, because pip keeps what has the same version. Byte code is written too, as for anybody who installs a wheel.
environment tramai --force-reinstall --no-deps "$root"
[ "${1:-all}" = tramai ] && exit
environment pyyaml PyYAML
environment burr burr
environment doit doit
environment gotask go-task-bin
environment yaml-workflow yaml-workflow
environment langgraph langgraph langgraph-checkpoint-sqlite
environment dbos dbos
environment proc procrastinate 'psycopg[binary,pool]'

command -v strace >/dev/null || echo "strace is missing: flushes cannot be counted" >&2
