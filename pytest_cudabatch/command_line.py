"""What a project's zygote inherits of the command line: all that shapes collection and fixtures.

Left out is what picks, orders, counts or reports tests, and what spreads them over processes: the
controller does that. A zygote gets its files as arguments instead of the user's.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence

import pytest

__all__ = ["inherited_arguments"]

DROPPED_FLAGS = frozenset(
    """
    -x --exitfirst --lf --last-failed --ff --failed-first --nf --new-first --cache-clear
    --sw --stepwise --sw-skip --stepwise-skip --sw-reset --stepwise-reset
    --co --collect-only --collectonly --setup-only --setup-plan --setup-show
    --pdb --trace --verbose --quiet --no-header --no-summary --looponfail -f --no-cov
    --help -h --version -V
    """.split()  # noqa: SIM905 - a column of words is easier to read and to sort
)
DROPPED_WITH_VALUE = frozenset(
    """
    -n --numprocesses --maxprocesses --max-worker-restart --dist --tx --px --rsyncdir --rsyncignore
    --junitxml --junit-xml --junitprefix --junit-prefix --report-log -r --durations --durations-min
    -k -m --deselect --maxfail --timeout --timeout-method --session-timeout
    --rootdir -c --config-file
    --cuda-select --cuda-platform --cuda-implementation --cuda-runtime --cuda-timeout --cuda-matrix-dir
    --cuda-report
    """.split()  # noqa: SIM905 - the same
)
DROPPED_PREFIXES = ("--cov", "--cuda-")
SHORT_VALUE = re.compile(r"-[nkmr].+")
"""A short option with its value in the same word, such as -n2."""
SHORT_FLAGS = re.compile(r"-[vqxs]+")
"""One or more short flags of output and stopping, such as -vv or -xq."""


def inherited_arguments(config: pytest.Config) -> tuple[str, ...]:
    """Return the options of ini ``addopts``, PYTEST_ADDOPTS and the command line that a zygote inherits.

    The zygote must be started with ``-o addopts=`` and without PYTEST_ADDOPTS, which are in here already.
    """
    given: list[str] = [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *config.invocation_params.args,
    ]
    return tuple(_inherited(given, positional=frozenset(config.args)))


def _inherited(words: Sequence[str], positional: Collection[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        name, has_value = word.partition("=")[0], "=" in word
        if name in DROPPED_WITH_VALUE:
            if not has_value:
                next(rest, None)
        elif not (
            word in positional
            or name in DROPPED_FLAGS
            or word.startswith(DROPPED_PREFIXES)
            or SHORT_VALUE.fullmatch(word)
            or SHORT_FLAGS.fullmatch(word)
        ):
            yield word
