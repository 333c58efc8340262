"""What the copy of a process that tries an import leaves behind, and what it does not see."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_cudabatch.cells import ImportGuard
from pytest_cudabatch.cells.processes import children

from .projects import Watched


def collect(pytester: pytest.Pytester, source: str, limit: float = 30.0) -> pytest.CollectReport | None:
    module = pytester.getmodulecol(source)
    return ImportGuard(limit).pytest_make_collect_report(module)


def test_an_import_that_succeeds_is_left_to_pytest_and_changes_nothing(pytester: pytest.Pytester) -> None:
    before = children()
    assert collect(pytester, "import os\nos.environ['IMPORTED_BY_A_COPY'] = '1'\nprint('unseen')") is None
    assert "IMPORTED_BY_A_COPY" not in os.environ
    assert children() == before


@pytest.mark.parametrize("source", ["raise LookupError", "raise SystemExit(0)", "raise KeyboardInterrupt"])
def test_an_exception_is_left_to_pytest(pytester: pytest.Pytester, source: str) -> None:
    assert collect(pytester, source) is None


def test_a_helper_that_the_copy_started_ends_with_it(pytester: pytest.Pytester) -> None:
    told = pytester.path / "told"
    os.mkfifo(told)
    reader = os.open(told, os.O_RDWR)
    try:
        report = collect(
            pytester,
            f"""
            import os, subprocess
            helper = subprocess.Popen(["sleep", "3600"])
            with open({str(told)!r}, "w") as told:
                told.write(str(helper.pid))
            os._exit(3)
            """,
        )
        helper = int(os.read(reader, 100))
    finally:
        os.close(reader)
    assert report is not None
    assert report.longreprtext.startswith("exited with status 3 when it was imported")
    assert not Path(f"/proc/{helper}").exists() or Watched([helper]).alive_after(2.0) == []
