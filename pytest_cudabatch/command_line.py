"""What a project's zygote inherits of the command line: all that shapes collection and fixtures.

Left out is what picks, orders, counts, times or reports tests, and what spreads them over processes: the
controller does that. A zygote gets its files as arguments instead of the user's, a temporary directory of
its own (whoever first uses --basetemp empties it), and none of the plugins that run tests anew: some start
threads, and a process with threads cannot be forked safely.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import pytest

__all__ = ["inherited_arguments"]

DROPPED_OPTIONS = frozenset(
    """
    -x --exitfirst --lf --last-failed --ff --failed-first --nf --new-first --cache-clear
    --sw --stepwise --sw-skip --stepwise-skip --sw-reset --stepwise-reset
    --co --collect-only --collectonly --setup-only --setup-plan --setup-show
    --pdb --trace --verbose --quiet --verbosity --no-header --no-summary --strict-config
    --junitxml --junit-xml --junitprefix --junit-prefix --report-log --durations --durations-min
    --deselect --maxfail --timeout --timeout-method --session-timeout
    --rootdir --config-file --version --basetemp
    --no-flaky-report --no-success-flaky-report
    """.split()  # noqa: SIM905 - a column of words is easier to read and to sort
)
DROPPED_GROUPS = ("cudabatch", "xdist", "cov", "rerunfailures", "Force flaky")
"""The groups of options, as their plugins name them, of which a zygote gets none."""

DROPPED_SHORT = re.compile(r"-[vqxs]*([vqxsV]|[nkmrc].*)")
"""Short flags of output and stopping, such as -xvs, perhaps ending in an option with a value, as in -vk."""

RERUNNING_PLUGINS = ("rerunfailures", "flaky")
"""Plugins that run a failed test anew: a cell's failure is a finding. The first also starts a thread."""

KEPT_PLUGINS = ("no:capture",)
"""A zygote is started with --capture=no, which is an option of that plugin."""


def inherited_arguments(config: pytest.Config) -> tuple[str, ...]:
    """Return the options of ini ``addopts``, PYTEST_ADDOPTS and the command line that a zygote inherits.

    The zygote must be started with ``-o addopts=`` and without PYTEST_ADDOPTS, which are in here already.
    Options that keep unwanted plugins out of it come last.
    """
    if config.getoption("help"):  # pytest configures its plugins to show their help, and runs nothing
        return ()
    parser = _parser(config)
    dropped = DROPPED_OPTIONS.union(*(_names(parser, group) for group in DROPPED_GROUPS))
    inherited = (
        option
        for option in _options(parser, list(_given(config)))
        if not (option[0].partition("=")[0] in dropped or DROPPED_SHORT.fullmatch(option[0]))
        if not _loads_what_a_zygote_lacks(option)
    )
    return (*(word for option in inherited for word in option), *_kept_out(config))


def _given(config: pytest.Config) -> Iterator[str]:
    """Yield all words that pytest has read, those of argument files (``@FILE``) among them."""
    added = shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    for word in (*config.getini("addopts"), *added, *config.invocation_params.args):
        yield from _lines(config.invocation_params.dir / word[1:]) if word.startswith("@") else [word]


def _lines(argument_file: Path) -> list[str]:
    return argument_file.read_text(encoding="utf-8").splitlines()


class _Borrower:
    """Gets hold of pytest's parser: its hook is historic, so a plugin that comes late is called at once."""

    parser: pytest.Parser

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        self.parser = parser


def _parser(config: pytest.Config) -> pytest.Parser:
    borrower = _Borrower()
    config.pluginmanager.register(borrower)
    config.pluginmanager.unregister(borrower)
    return borrower.parser


def _names(parser: pytest.Parser, group: str) -> set[str]:
    """Return the names of all options in a group; a group that no plugin has made is empty."""
    return {name for option in parser.getgroup(group).options for name in option.names()}


def _options(parser: pytest.Parser, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each option with its values; the positional arguments are left out.

    The parser itself tells them apart: without a word that is positional, the command line has one
    positional argument less; without a value it has as many as before, or an option that lacks its value.
    All other words stay, since there may be options that must be given.
    """
    words = list(takewhile(lambda word: word != "--", words))
    starts = [number for number, word in enumerate(words) if _is_option(parser, word, words)]
    for start, after in zip(starts, [*starts[1:], len(words)], strict=True):
        end, rest = after, words[after:]
        while end > start + 1 and _is_positional(parser, words[:end], rest):
            end -= 1
        yield tuple(words[start:end])


def _is_positional(parser: pytest.Parser, words: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether the last of ``words`` is a positional argument, where ``rest`` follows."""
    with_it, without = (_positionals(parser, [*head, *rest]) for head in (words, words[:-1]))
    return with_it is not None and without == with_it - 1


def _is_option(parser: pytest.Parser, word: str, words: Sequence[str]) -> bool:
    """Whether ``word`` is more than a look-alike such as -1; ``words`` hold all that must be given."""
    return word.startswith("-") and not _is_positional(parser, [word], words)


def _positionals(parser: pytest.Parser, words: Sequence[str]) -> int | None:
    """Return how many of the words are positional arguments; None if this is no good command line."""
    try:
        known, surplus = parser.parse_known_and_unknown_args(words)
    except pytest.UsageError:
        return None
    return len(known.file_or_dir) + len(surplus)


def _loads_what_a_zygote_lacks(option: Sequence[str]) -> bool:
    """Whether this is a -p that loads a plugin that is kept out, or keeps out one that is needed."""
    word, *values = option
    if not word.startswith("-p"):
        return False
    plugin = "".join((word.removeprefix("-p"), *values))
    return plugin in KEPT_PLUGINS or plugin.removeprefix("pytest_") in RERUNNING_PLUGINS


def _kept_out(config: pytest.Config) -> Iterable[str]:
    """Return what keeps those plugins out, and makes their markers and ini settings no errors."""
    plugins = config.pluginmanager
    unwanted = [name for name in RERUNNING_PLUGINS if _has(plugins, name)]
    if not unwanted:
        return ()
    return (
        *(word for name in unwanted for word in ("-p", f"no:{name}")),
        *("-o", "markers=" + "\n".join(config.getini("markers"))),
        *(("-o", "strict_config=false") if pytest.version_tuple >= (9,) else ()),
        *("-W", "ignore:Unknown config option:pytest.PytestConfigWarning"),
    )


def _has(plugins: pytest.PytestPluginManager, name: str) -> bool:
    return plugins.has_plugin(name) or plugins.has_plugin(f"pytest_{name}")
