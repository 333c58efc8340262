#!/bin/sh
# Runs pytest with pytest-cudabatch from this directory, on a host without any network:
#
#     run.sh PYTEST-ARGS                 for example: run.sh --cuda-matrix --cuda-suite-only
#
# The first use makes a virtual environment beside this file. Variables:
#   CUDABATCH_SYSTEM_SITE=1   let it see the packages of the Python that it is made from (torch)
#   CUDABATCH_PYTHON=PATH     that Python, where it is not the first @PYTHON@ on PATH
set -eu

bundle=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

fail() {
    printf 'run.sh: %s\n' "$1" >&2
    exit 4
}

is_wanted_python() {
    "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "@PYTHON@")' 2>/dev/null
}

find_python() {
    if [ -n "${CUDABATCH_PYTHON:-}" ]; then
        is_wanted_python "$CUDABATCH_PYTHON" || fail "CUDABATCH_PYTHON=$CUDABATCH_PYTHON is not a Python @PYTHON@"
        python=$CUDABATCH_PYTHON
        return
    fi
    for python in python3 python@PYTHON@ python; do
        if is_wanted_python "$python"; then return; fi
    done
    fail "this bundle needs Python @PYTHON@; none is on PATH, so name one by CUDABATCH_PYTHON"
}

# A virtual environment sees the packages of a base installation only; a Python that is itself in a virtual
# environment passes its own packages on by a .pth file.
share_packages() {
    "$python" - "$1" <<'EOF'
import pathlib, site, sys
if sys.prefix != sys.base_prefix:
    own = pathlib.Path(sys.argv[1], "lib", "python@PYTHON@", "site-packages")
    (own / "host_packages.pth").write_text("\n".join(site.getsitepackages()) + "\n")
EOF
}

# pip comes from the bundle: ensurepip is a package of its own on some distributions, and missing.
make_environment() {
    "$python" -m venv --without-pip ${system_site:+--system-site-packages} "$1"
    if [ -n "$system_site" ]; then share_packages "$1"; fi
    set -- "$1" "$bundle"/wheels/pip-*.whl
    PIP_CONFIG_FILE=/dev/null PYTHONPATH=$2 "$1/bin/python" -m pip --isolated --quiet install \
        --no-index --find-links "$bundle/wheels" --disable-pip-version-check --no-cache-dir \
        --root-user-action=ignore pytest-cudabatch
    for package in "$bundle"/packages/*.whl; do
        if [ ! -e "$package" ]; then break; fi
        PIP_CONFIG_FILE=/dev/null PYTHONPATH=$2 "$1/bin/python" -m pip --isolated --quiet install \
            --no-index --no-deps --disable-pip-version-check --no-cache-dir --root-user-action=ignore "$package"
    done
}

system_site=''
environment=$bundle/environment
if [ "${CUDABATCH_SYSTEM_SITE:-}" = 1 ]; then
    system_site=yes
    environment=$bundle/environment-system-site
fi

works() {
    "$environment/bin/python" -c 'import pytest' 2>/dev/null
}

# The environment is made under a name of its own and then linked in one step: a run that dies halfway
# leaves no half-made one in use, and of two first runs at once each finds a whole one.
if ! works; then
    find_python
    made=$(mktemp -d "$environment.XXXXXX")
    trap 'rm -rf "$made"' EXIT
    trap 'exit 130' INT TERM
    chmod 755 "$made"
    make_environment "$made"
    if works; then
        rm -rf "$made"
    else
        "$python" - "$made" "$environment" <<'EOF'
import os, sys
made, environment = sys.argv[1:]
os.symlink(os.path.basename(made), made + ".link")
os.replace(made + ".link", environment)
EOF
    fi
    trap - EXIT INT TERM
fi

CUDABATCH_RUNTIMES=$bundle/runtimes${CUDABATCH_RUNTIMES:+:$CUDABATCH_RUNTIMES}
export CUDABATCH_RUNTIMES
# Like python -m pytest, but without the current directory on sys.path, where a checkout of this or of another
# package would shadow what is installed.
exec "$environment/bin/python" -c '
import runpy, sys
if sys.path[0] == "":
    del sys.path[0]
runpy.run_module("pytest", run_name="__main__", alter_sys=True)
' "$@"
