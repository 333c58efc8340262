"""The options of a gate: sizes, --cuda-strict, --cuda-require, budgets, injection and blame."""

from __future__ import annotations

import json
from typing import Any

import pytest

ONE_PAIRING = "runtime==12.9 on driver==13.0"


def run(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, list[dict[str, Any]]]:
    result = pytester.runpytest_subprocess(
        "--cuda-matrix", "--cuda-platform=simulated", "--cuda-report=report.json", *arguments
    )
    cells: list[dict[str, Any]] = json.loads((pytester.path / "report.json").read_text())["cells"]
    return result, cells


def functions(cells: list[dict[str, Any]]) -> set[str]:
    return {cell["case"].partition("::")[2].partition("[")[0] for cell in cells}


TIERS = """
import pytest

@pytest.mark.cuda_cell(tier="smoke")
def test_small(cuda_pairing):
    pass

def test_medium(cuda_pairing):
    pass

@pytest.mark.cuda_cell(tier="nightly")
def test_large(cuda_pairing):
    pass
"""


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        ("smoke ", {"test_small"}),
        ("gate ", {"test_small", "test_medium"}),
        ("", {"test_small", "test_medium"}),
        ("nightly ", {"test_small", "test_medium", "test_large"}),
    ],
    ids=["smoke", "gate", "default", "nightly"],
)
def test_selections_by_size(pytester: pytest.Pytester, tier: str, expected: set[str]) -> None:
    pytester.makepyfile(TIERS)
    _, cells = run(pytester, "--cuda-no-suite", f"--cuda-select={tier}{ONE_PAIRING}")
    assert functions(cells) == expected
    assert {cell["pairing"] for cell in cells} == {"cu12.9-d13.0"}


def test_a_tier_alone_keeps_all_pairings(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TIERS)
    _, cells = run(pytester, "--cuda-no-suite", "--cuda-select=smoke")
    assert len(cells) == 36


def test_one_pairing_of_each_class(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.cuda_cell(pairings="class")
        def test_it(cuda_pairing):
            pass
        """
    )
    _, cells = run(pytester, "--cuda-no-suite")
    # Three libraries of each kind, and a 13.x runtime on a 13.x driver only.
    assert [cell["pairing"] for cell in cells] == [
        "cu12.6-d12.4",
        "cu12.6-d12.9",
        "cu12.6-d13.5",
        "cu12.9-d12.4",
        "cu12.9-d12.9",
        "cu12.9-d13.5",
        "cu13.5-d13.5",
    ]


def test_strict_wants_a_named_platform(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--cuda-matrix", "--cuda-strict")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --cuda-strict wants to know what it guards: *--cuda-platform*"])


def test_strict_passes_a_run_with_evidence(pytester: pytest.Pytester) -> None:
    result, _ = run(pytester, "--cuda-strict", "-k", "test_callee", f"--cuda-select={ONE_PAIRING}")
    assert result.ret == 0


def test_strict_fails_without_a_cell(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n\ndef test_it(cuda_pairing):\n    pytest.skip('not today')\n")
    arguments = ("--cuda-no-suite", f"--cuda-select={ONE_PAIRING}")
    result, _ = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result, _ = run(pytester, *arguments, "--cuda-strict")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED --cuda-strict: no cell ran on platform simulated"])


def test_required_cells(pytester: pytest.Pytester) -> None:
    arguments = ("-k", "test_callee", f"--cuda-select={ONE_PAIRING}")
    result, _ = run(pytester, *arguments, "--cuda-require=simulated:1")
    assert result.ret == 0
    result, _ = run(pytester, *arguments, "--cuda-require=device:1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED --cuda-require=device:1: 0 cells ran there"])


def test_required_cells_are_platform_and_number(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--cuda-matrix", "--cuda-require=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --cuda-require: 'gpu' is not PLATFORM:N, such as device:1"])


def test_what_does_not_fit_the_budget_is_skipped_and_listed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time

        def test_slow(cuda_pairing):
            time.sleep(0.6)

        def test_next(cuda_pairing):
            pass
        """
    )
    result, cells = run(
        pytester, "--cuda-no-suite", f"--cuda-select={ONE_PAIRING}", "--cuda-budget=0.5", "-rs"
    )
    assert result.ret == 0
    assert functions(cells) == {"test_slow"}
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*--cuda-budget was spent before this cell"])
    result.stdout.fnmatch_lines(["*not started: --cuda-budget was spent*", "*::test_next?cu12.9-d13.0?"])


def test_injection_into_every_cell(pytester: pytest.Pytester) -> None:
    _, (cell,) = run(
        pytester, "-k", "test_a_blocking", f"--cuda-select={ONE_PAIRING}", "--cuda-inject=batch=801"
    )
    assert (cell["verdict"], cell["finding"]["code"]) == ("failed", "silent-fallback")
    assert (cell["calls"]["batch"], cell["path"]) == (1, "fallback")


@pytest.mark.parametrize(
    ("rules", "verdict", "signal", "finding"),
    [
        ("batch=crash", "crashed", "SIGSEGV", "crash"),
        ("batch=hang", "hung", None, "hang"),
        ("lookup=hang", "hung", None, "hang"),
        ("lookup@1=other-abi", "crashed", "SIGSEGV", "wrong-abi"),
        ("batch=delay:20; driver-version=delay:20", "passed", None, None),
    ],
)
def test_every_effect_reaches_a_cell(
    pytester: pytest.Pytester, rules: str, verdict: str, signal: str | None, finding: str | None
) -> None:
    options = (f"--cuda-select={ONE_PAIRING}", f"--cuda-inject={rules}", "--cuda-timeout=3")
    _, (cell,) = run(pytester, "-k", "test_a_blocking", *options)
    assert (cell["verdict"], cell["finding"] and cell["finding"]["code"]) == (verdict, finding)
    if verdict != "hung":  # which signal ends a hang is the supervisor's business
        assert cell["signal"] == signal


def test_injection_that_does_not_parse(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--cuda-matrix", "--cuda-inject=batch=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0].startswith("ERROR: --cuda-inject: ")


OLD_DRIVER_MATRIX = """
schema = 1
[[legal]]
runtime = "==13.0"
driver = "==12.8"
basis = "assumed"
source = "a host that nobody upgraded"
"""


def test_a_runtime_too_new_for_its_driver_is_unavailable(pytester: pytest.Pytester) -> None:
    """Neither a pass nor a failure of the code under test; the gate fails it by --cuda-strict."""
    (pytester.mkdir("mine") / "pairings.toml").write_text(OLD_DRIVER_MATRIX)
    arguments = ("--cuda-matrix-dir=mine", "--cuda-select=runtime==13.0 on driver==12.8", "-k", "test_callee")
    result, (cell,) = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.assert_outcomes(skipped=1)
    assert (cell["verdict"], cell["finding"]["code"]) == ("unavailable", "driver-too-old")
    result, _ = run(pytester, *arguments, "--cuda-strict")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED --cuda-strict: 1 cells were unavailable"])


def test_blame_reaches_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(cuda_pairing, cuda_finding):
            with cuda_finding("wrong-bytes"):
                assert 1 == 2, "two bytes differ"
        """
    )
    result, (cell,) = run(pytester, "--cuda-no-suite", f"--cuda-select={ONE_PAIRING}")
    assert result.ret == 1
    assert cell["finding"]["code"] == "wrong-bytes"
    assert cell["finding"]["summary"].startswith("AssertionError: two bytes differ")


def test_a_declared_finding_stands_for_every_failure_of_its_case(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.cuda_cell(kind="F8", finding="legacy-stream")
        def test_it(cuda_pairing):
            assert 1 == 2
        """
    )
    _, (cell,) = run(pytester, "--cuda-no-suite", f"--cuda-select={ONE_PAIRING}")
    assert (cell["kind"], cell["finding"]["code"]) == ("F8", "legacy-stream")
