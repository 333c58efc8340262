"""The pytest plugin: options, markers and fixtures; everything else is loaded when a run asks for it.

Without ``--cuda-matrix`` it only skips cell tests, with a reason. With it, :mod:`pytest_cudabatch.controller`
takes part in the session; in a zygote, :mod:`pytest_cudabatch.zygote_plugin` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_cudabatch.fixtures import (
    batch_copy,
    copy_plan,
    cuda_contract,
    cuda_evidence,
    cuda_finding,
    cuda_gate,
    cuda_inject,
    cuda_pairing,
    cuda_runtime,
    cuda_stream,
)
from pytest_cudabatch.load_order import cuda_load_order

if TYPE_CHECKING:
    from pytest_cudabatch.run import Run

__all__ = [
    "RUN",
    "active_run",
    "batch_copy",
    "copy_plan",
    "cuda_contract",
    "cuda_evidence",
    "cuda_finding",
    "cuda_gate",
    "cuda_inject",
    "cuda_load_order",
    "cuda_pairing",
    "cuda_runtime",
    "cuda_stream",
    "is_cell",
    "lacks_pairing",
]

RUN: pytest.StashKey[Run] = pytest.StashKey()
"""Where a config keeps the run that it belongs to; absent without ``--cuda-matrix``."""

ZYGOTE_MODULE = "pytest_cudabatch.cells.zygote"
"""The plugin that a supervisor loads into its zygotes, and nobody else."""

SKIP_REASON = "a cell test of pytest-cudabatch: runs with --cuda-matrix only"

MARKERS = (
    "cuda_cell(kind=None, finding=None, tier='gate', pairings='each', alone=False, devices=1): run this "
    "test in a process of its own under --cuda-matrix; `kind` names the failure kind that it covers, "
    "`finding` what its failure stands for, `tier` the smallest selection with it (smoke, gate, nightly), "
    "pairings='class' takes one simulated pairing of each class of behaviour, 'major' the newest runtime of "
    "each major version on the newest driver, alone=True gives it a process of its own whatever the "
    "isolation, devices=N skips it where there are fewer; simulated CUDA has as many as a test wants that "
    "runs alone",
    'cuda_pairings(expression): only on pairings that match, such as "runtime>=12.8,<13 on driver>=13"',
    "cuda_known_issue(id): a failure of this test belongs to that known issue",
)

# The suite's cases are imported, not collected from a path in args, when they are listed; without this an
# editable install would lose the rewriting of their assertions.
pytest.register_assert_rewrite("pytest_cudabatch.conformance")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, in a group of their own, with ini twins for the settings."""
    group = parser.getgroup("cudabatch", "CUDA batch copies across runtimes and drivers")
    group.addoption(
        "--cuda-matrix",
        action="store_true",
        help="run the built-in suite and this project's cell tests on every pairing of a runtime and driver",
    )
    group.addoption("--cuda-no-suite", action="store_true", help="leave the built-in suite out")
    group.addoption(
        "--cuda-suite-only",
        action="store_true",
        help="run the built-in suite only; do not import the project's tests",
    )
    group.addoption(
        "--cuda-runtime",
        metavar="PATH",
        action="append",
        default=[],
        help="a libcudart to pair with the drivers, instead of those that are known (repeatable)",
    )
    group.addoption(
        "--cuda-report",
        metavar="FILE",
        action="append",
        default=[],
        help="write the run's report to FILE; its suffix is the format: .json (repeatable)",
    )
    _setting(
        parser,
        group,
        "cuda-select",
        metavar="EXPR",
        help="what to run: smoke, gate (default) or nightly, then pairings if not all are wanted, such as "
        '"runtime>=12.8,<13 on driver>=13"',
    )
    group.addoption(
        "--cuda-strict",
        action="store_true",
        help="fail also on unavailable cells, unknown paths and a platform without cells; --cuda-platform "
        "must be named",
    )
    group.addoption(
        "--cuda-require",
        metavar="PLATFORM:N",
        action="append",
        default=[],
        help="fail unless at least N cells ran on that platform, such as device:1 (repeatable)",
    )
    group.addoption(
        "--cuda-inject",
        metavar="SPEC",
        default=None,
        help='faults to inject into every cell, such as "batch=801; per-copy@3=1"',
    )
    _setting(
        parser,
        group,
        "cuda-known-issues",
        metavar="report|fail",
        help="whether a failure that is a known issue of a driver is reported (default) or fails the run",
    )
    _setting(
        parser,
        group,
        "cuda-budget",
        metavar="S",
        help="seconds for all cells; what did not fit is skipped and listed (default: unlimited)",
    )
    _setting(
        parser,
        group,
        "cuda-platform",
        metavar="auto|device|simulated|no-driver",
        help="where the cells run: a real GPU, simulated CUDA, or real runtimes without a driver (no "
        "copies); auto takes a GPU where one can be used, else simulated CUDA",
    )
    _setting(
        parser,
        group,
        "cuda-schedule",
        metavar="fair|adversarial[:SEED]",
        help="when queued work runs on simulated CUDA: as soon as it may, in order (default), or as late and "
        "in as odd an order as CUDA allows, by a seed that is drawn and printed where none is given",
    )
    _setting(
        parser,
        group,
        "cuda-implementation",
        metavar="NAME",
        action="append",
        help="the implementation under test: reference, specimen:NAME, an entry point, or module:attribute "
        "(repeatable; default: reference)",
    )
    _setting(
        parser,
        group,
        "cuda-isolation",
        metavar="cell|pairing|none",
        help="what a process is for: one cell (default); the cells of one pairing, until one of them spoils "
        "it; none: all run in pytest's own process, for debuggers and coverage, and no crash is survived",
    )
    _setting(parser, group, "cuda-timeout", metavar="S", help="seconds that one cell may take (default: 60)")
    _setting(
        parser,
        group,
        "cuda-matrix-dir",
        metavar="DIR",
        help="a directory with the project's own matrix files and known-issues.toml, merged over ours",
    )


def _setting(
    parser: pytest.Parser,
    group: pytest.OptionGroup,
    name: str,
    **option: Any,
) -> None:
    """Declare an option and its ini twin; the option wins where both are given."""
    group.addoption(f"--{name}", default=None, **option)
    ini, help_text = name.replace("-", "_"), f"ini twin of --{name}"
    if option.get("action") == "append":
        parser.addini(ini, help_text, type="args")
    else:
        parser.addini(ini, help_text, type="string")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer our own hooks."""
    from pytest_cudabatch import hookspecs  # noqa: PLC0415 - not needed before

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and whoever plays this process's part in a run."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.pluginmanager.has_plugin(ZYGOTE_MODULE):
        from pytest_cudabatch import zygote_plugin  # noqa: PLC0415 - only in a zygote

        zygote_plugin.take_part(config)
    elif not config.getoption("cuda_matrix"):
        # A gate's line that lost its flag must not stay green.
        for option in ("cuda_strict", "cuda_require"):
            if config.getoption(option):
                raise pytest.UsageError(
                    f"--{option.replace('_', '-')} goes with --cuda-matrix, which is missing"
                )
    else:
        from pytest_cudabatch import controller  # noqa: PLC0415 - only in a matrix run

        controller.take_part(config)


def active_run(config: pytest.Config) -> Run | None:
    """Return the run that this session belongs to, or None where ``--cuda-matrix`` was not given."""
    return config.stash.get(RUN, None)


def is_cell(item: pytest.Item) -> bool:
    """Whether ``item`` is a cell test: it uses ``cuda_pairing``, also through a fixture, or is marked."""
    if "cuda_pairing" in getattr(item, "fixturenames", ()):
        return True
    return item.get_closest_marker("cuda_cell") is not None


def lacks_pairing(item: pytest.Item) -> bool:
    """Whether no pairing is left for a test that needs one: pytest then makes an item without a parameter."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return "cuda_pairing" in parameters and not hasattr(parameters["cuda_pairing"], "id")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Spread cell tests over implementations and pairings, after the test's own parameters."""
    if "cuda_pairing" not in metafunc.fixturenames:
        return
    run = active_run(metafunc.config)
    if run is not None:
        run.parametrize(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip cell tests, with the reason, where no run was asked for."""
    if active_run(config) is None:
        for item in items:
            if is_cell(item):
                item.add_marker(pytest.mark.skip(reason=SKIP_REASON))
