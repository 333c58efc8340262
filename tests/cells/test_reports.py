"""Reports that are completed after a crash agree with those that pytest makes after an exception."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_cudabatch.cells import Zygote, complete_reports
from pytest_cudabatch.errors import CellError

from .projects import PLENTY, write_project, zygote_of

# Each marker is put on a test that ends badly in one phase, once by an exception and once by a crash.
MARKERS = {
    "plain": "",
    "reason": "@pytest.mark.xfail(reason='known')",
    "no_reason": "@pytest.mark.xfail",
    "strict": "@pytest.mark.xfail(reason='known', strict=True)",
    "true": "@pytest.mark.xfail(True, reason='known')",
    "false": "@pytest.mark.xfail(False, reason='known')",
    "keyword": "@pytest.mark.xfail(condition=1 > 0, reason='known')",
    "text": "@pytest.mark.xfail('os.sep == \"/\" and OWN_GLOBAL')",
    "false_text": "@pytest.mark.xfail('not OWN_GLOBAL')",
    "second": "@pytest.mark.xfail(True, reason='outer')\n@pytest.mark.xfail(False, reason='inner')",
    "broken_text": "@pytest.mark.xfail('no_such_name')",
    "namespace": "@pytest.mark.xfail('FROM_CONFTEST')",
}

PHASES = {
    "setup": "def test_{id}(ends_in_setup): pass",
    "call": "def test_{id}(): end()",
    "teardown": "def test_{id}(ends_in_teardown): pass",
}

HEAD = """
import os
import pytest
OWN_GLOBAL = True
{end}
@pytest.fixture
def ends_in_setup(): end()
@pytest.fixture
def ends_in_teardown():
    yield
    end()
@pytest.fixture
def marks_itself(request):
    request.node.add_marker(pytest.mark.xfail(reason='by a fixture'))
def test_fixture_call(marks_itself): end()
class TestClass:
    pytestmark = pytest.mark.xfail(reason='of the class')
    def test_call(self): end()
"""


def source(end: str) -> str:
    tests = [
        f"{marker}\n{body.format(id=f'{name}_{phase}')}"
        for name, marker in MARKERS.items()
        for phase, body in PHASES.items()
    ]
    return HEAD.format(end=end) + "\n".join(tests) + "\n"


CONFTEST = "def pytest_markeval_namespace(config): return {'FROM_CONFTEST': True}\n"

NAMES = [f"test_{name}_{phase}" for name in MARKERS for phase in PHASES]


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    files = {
        "conftest.py": CONFTEST,
        "test_raises.py": source("def end(): raise LookupError"),
        "test_crashes.py": source("def end(): os.abort()"),
    }
    with zygote_of(write_project(tmp_path_factory.mktemp("reports"), files)) as zygote:
        yield zygote


def run(zygote: Zygote, name: str, config: pytest.Config, **changed: Any) -> list[pytest.TestReport]:
    outcome = zygote.run(name, deadline=PLENTY)
    return complete_reports(outcome, zygote.item(name), "it crashed", config=config, **changed)


def summary(reports: list[pytest.TestReport]) -> list[tuple[str | None, str, str | None]]:
    return [(report.when, report.outcome, getattr(report, "wasxfail", None)) for report in reports]


@pytest.mark.parametrize("name", [*NAMES, "test_fixture_call", "TestClass::test_call"])
def test_a_crash_is_reported_as_an_exception_would_be(zygote, pytestconfig, name):
    raised = run(zygote, f"test_raises.py::{name}", pytestconfig)
    crashed = run(zygote, f"test_crashes.py::{name}", pytestconfig)
    assert summary(crashed) == summary(raised)


def test_xfail_with_raises_does_not_cover_a_crash(tmp_path, pytestconfig):
    source = """
        import os, pytest
        @pytest.mark.xfail(raises=LookupError)
        def test_one(): os.abort()
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        reports = run(zygote, "test_a.py::test_one", pytestconfig)
    assert summary(reports) == [
        ("setup", "passed", None),
        ("call", "failed", None),
        ("teardown", "passed", None),
    ]


def test_a_skips_place_and_reason_are_what_pytest_makes_them(tmp_path, pytestconfig):
    """pytest's own summary of skips (-rs) takes nothing but a tuple."""
    source = """
        import pytest
        def test_one(): pytest.skip("not here")
    """
    project = write_project(tmp_path, {"test_a.py": source})
    with zygote_of(project) as zygote:
        _, skipped, _ = run(zygote, "test_a.py::test_one", pytestconfig)
    assert skipped.longrepr == (str(project / "test_a.py"), 3, "Skipped: not here")


def test_runxfail_is_respected(tmp_path, pytestconfig):
    source = """
        import os, pytest
        @pytest.mark.xfail
        def test_one(): os.abort()
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source}), "--runxfail") as zygote:
        reports = run(zygote, "test_a.py::test_one", pytestconfig)
    assert summary(reports) == [
        ("setup", "passed", None),
        ("call", "failed", None),
        ("teardown", "passed", None),
    ]


def test_failure_points_at_the_test_and_carries_its_text(zygote, pytestconfig):
    reports = run(zygote, "test_crashes.py::test_plain_call", pytestconfig)
    failure = reports[1].longrepr
    item = zygote.item("test_crashes.py::test_plain_call")
    assert failure.reprcrash.message == "Failed: it crashed"
    assert (failure.reprcrash.path, failure.reprcrash.lineno) == (item.location[0], item.location[1] + 1)
    assert reports[1].longreprtext == "it crashed"


def test_failure_survives_serialisation(zygote, pytestconfig):
    """As pytest-xdist sends it from a worker to its controller."""
    report = run(zygote, "test_crashes.py::test_plain_call", pytestconfig)[1]
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    again = pytestconfig.hook.pytest_report_from_serializable(config=pytestconfig, data=data)
    assert (again.longrepr.reprcrash.message, again.longreprtext) == ("Failed: it crashed", "it crashed")


def test_a_failed_report_that_a_crash_replaces_keeps_its_text(tmp_path, pytestconfig):
    source = """
        import atexit, os
        import pytest
        @pytest.fixture
        def fails():
            atexit.register(os.abort)
            yield
            raise LookupError("of the teardown")
        def test_one(fails): pass
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        reports = run(zygote, "test_a.py::test_one", pytestconfig)
    assert [report.outcome for report in reports] == ["passed", "passed", "failed"]
    first, *_, last = reports[2].longreprtext.splitlines()
    assert (first, last.split(": ")[-1]) == ("it crashed", "LookupError")


def test_duration_is_what_the_earlier_phases_left(zygote, pytestconfig):
    outcome = zygote.run("test_crashes.py::test_plain_call", deadline=PLENTY)
    item = zygote.item(outcome.nodeid)
    reports = complete_reports(outcome, item, "", config=pytestconfig)
    assert sum(report.duration for report in reports) == pytest.approx(outcome.seconds)


def test_node_id_and_location_are_rewritten(zygote, pytestconfig):
    location = ("sub/test_crashes.py", 4, "test_plain_call")
    reports = run(
        zygote,
        "test_crashes.py::test_plain_call",
        pytestconfig,
        nodeid="sub/test_crashes.py::test_plain_call",
        location=location,
    )
    assert [(report.nodeid, report.location) for report in reports] == [
        ("sub/test_crashes.py::test_plain_call", location)
    ] * 3


def test_keywords_are_those_of_the_item(zygote, pytestconfig):
    reports = run(zygote, "test_crashes.py::test_strict_call", pytestconfig)
    item = zygote.item("test_crashes.py::test_strict_call")
    assert set(reports[0].keywords) == set(reports[1].keywords) == set(item.keywords) >= {"xfail"}


@pytest.mark.parametrize(
    "data",
    [{"$report_type": "Strange"}, {"$report_type": "CollectReport", "result": None}, {"outcome": None}, {}],
)
def test_a_report_that_nobody_reads_is_an_error(zygote, pytestconfig, data):
    outcome = zygote.run("test_raises.py::test_plain_call", deadline=PLENTY)
    strange = replace(outcome, reports=({"when": "call", "nodeid": outcome.nodeid, **data},))
    with pytest.raises(CellError, match=r"^test_raises.py::test_plain_call: it sent a report"):
        complete_reports(strange, zygote.item(outcome.nodeid), "", config=pytestconfig)


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="pytest has subtests since 9.0")
def test_reports_of_subtests_stay_and_the_crash_is_added(tmp_path, pytestconfig):
    source = """
        import os
        def test_one(subtests):
            with subtests.test("good"): pass
            with subtests.test("bad"): assert False
            print("then")
            os.abort()
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        reports = run(zygote, "test_a.py::test_one", pytestconfig)
    assert [(report.when, report.outcome, type(report) is pytest.TestReport) for report in reports] == [
        ("setup", "passed", True),
        ("call", "passed", False),
        ("call", "failed", False),
        ("call", "failed", True),
        ("teardown", "passed", True),
    ]
    assert [report.capstdout for report in reports[2:4]] == ["", "then\n"]
