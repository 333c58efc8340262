"""JUnit XML (xunit2) of merged records: what pytest's own --junitxml says, also of a run that died.

One test suite for each host and platform, since passes of one say nothing of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from pytest_cudabatch.reports.merging import Merged, MergedCell
from pytest_cudabatch.reports.records import PlannedCell, RunRecord

__all__ = ["junit_xml"]

ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""


def junit_xml(merged: Merged) -> bytes:
    """Return the document. Cells without a result, and cells that disagree, are never passes."""
    root = ET.Element("testsuites", name="pytest-cudabatch")
    numbers: dict[str, list[int]] = {}
    for number, record in enumerate(merged.records):
        numbers.setdefault(_suite_name(record), []).append(number)
    for name, own in numbers.items():
        root.append(_suite(name, merged, own))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite_name(record: RunRecord) -> str:
    host = record.host
    gpus = ", ".join(gpu["name"] for gpu in host["gpus"])
    driver = f"driver {host['driver_release'] or host['driver']}" if host["driver"] else ""
    return " ".join(filter(None, ("cudabatch", host["platform"], gpus, driver)))


def _suite(name: str, merged: Merged, numbers: Sequence[int]) -> ET.Element:
    cases = [_case(merged, cell) for cell in merged.cells if cell.chosen.record in numbers]
    for number in numbers:
        cases.extend(_unfinished_case(cell, state) for cell, state in merged.unfinished(number).items())
        cases.extend(_error_cases(merged.records[number]))
    counts: dict[str, str] = {
        attribute: str(sum(case.find(tag) is not None for case in cases))
        for attribute, tag in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped"))
    }
    seconds = sum(float(case.get("time", "0")) for case in cases)
    started = min(str(merged.records[number].run["started"]) for number in numbers)
    totals = {"tests": str(len(cases)), "time": f"{seconds:.3f}", "timestamp": started}
    suite = ET.Element("testsuite", {"name": _legal(name), **counts, **totals})
    suite.extend(cases)
    return suite


def _element(nodeid: str, seconds: float) -> ET.Element:
    """Name a test as pytest's own JUnit report does: dotted file and classes, then function."""
    file, _, rest = nodeid.partition("::")
    # Parameters may hold anything, "::" too.
    function, bracket, parameters = rest.partition("[")
    *classes, function = function.split("::")
    module = file.removesuffix(".py").replace("/", ".")
    case = ET.Element("testcase", classname=_legal(".".join([module, *classes])))
    case.set("name", _legal(f"{function}{bracket}{parameters}" or file))
    case.set("time", f"{seconds:.3f}")
    return case


def _case(merged: Merged, cell: MergedCell) -> ET.Element:
    data, text = cell.chosen.cell.data, cell.chosen.cell.text
    case = _element(data["nodeid"], data["seconds"])
    properties = text.properties or tuple(_properties(data))
    if properties:
        holder = ET.SubElement(case, "properties")
        for name, value in properties:
            ET.SubElement(holder, "property", name=_legal(name), value=_legal(value))
    if cell.in_conflict:
        seen = "; ".join(f"{one.cell.verdict} in {merged.records[one.record].source}" for one in cell.seen)
        _add(case, "failure", f"the reports disagree: {seen}", _text(cell) or seen)
    elif data["pytest"] in ("skipped", "xfailed"):
        kind = "pytest.skip" if data["pytest"] == "skipped" else "pytest.xfail"
        reason = text.reason or data.get("known_issue") or _summary(data)
        ET.SubElement(case, "skipped", type=kind, message=_legal(reason))
    elif data["pytest"] == "failed":
        failures = text.failures
        when = failures[0].when if failures else data["phase"]
        message = failures[0].message if failures else _summary(data)
        _add(case, "error" if when in ("setup", "teardown") else "failure", message, _text(cell) or message)
    return case


def _add(case: ET.Element, tag: str, message: str, text: str) -> None:
    ET.SubElement(case, tag, message=_legal(message)).text = _legal(text)


def _text(cell: MergedCell) -> str:
    return "\n\n".join(failure.text for failure in cell.chosen.cell.text.failures)


def _summary(data: dict[str, Any] | Any) -> str:
    finding = data["finding"]
    return f"{finding['code']}: {finding['summary']}" if finding else str(data["verdict"])


def _properties(data: Any) -> Iterator[tuple[str, str]]:
    for name in ("verdict", "path", "pairing", "platform"):
        if data[name] is not None:
            yield f"cudabatch_{name}", str(data[name])
    if data["finding"]:
        yield "cudabatch_finding", str(data["finding"]["code"])


def _unfinished_case(cell: PlannedCell, state: str) -> ET.Element:
    case = _element(cell.nodeid, 0.0)
    words = "it was running when the record ends" if state == "running" else "it was not started"
    _add(case, "error", f"not finished: {words}", f"{cell.nodeid}: planned, and there is no result; {words}")
    return case


def _error_cases(record: RunRecord) -> Iterator[ET.Element]:
    """One case for each cell that an error cost its verdict; one for an error that is of no cell."""
    for error in record.errors:
        for nodeid in [cell.nodeid for cell in error.cells] or [f"{record.source}::error"]:
            case = _element(nodeid, 0.0)
            _add(case, "error", error.summary, error.summary)
            yield case


def _legal(text: str) -> str:
    return ILLEGAL.sub(lambda match: f"#x{ord(match.group()):02X}", text)
