"""A recording for people and for machines: what each process did, and all of them together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.interposer import (
    Call,
    CopyPath,
    Evidence,
    Fault,
    Location,
    Lookup,
    ProcessEvidence,
    Site,
    VersionQuery,
)
from pytest_cudabatch.recording.recording import Recording, Traced

__all__ = ["SCHEMA", "as_json", "exit_status", "lines"]

SCHEMA = "pytest-cudabatch/recording/1"
_SIGNALLED = 128


def exit_status(recording: Recording) -> int:
    """Return the program's exit status, or 128 and its signal, as shells do."""
    code = os.waitstatus_to_exitcode(recording.status)
    return code if code >= 0 else _SIGNALLED - code


def as_json(recording: Recording) -> dict[str, Any]:
    """Return the recording as JSON data; its schema is SCHEMA."""
    code = os.waitstatus_to_exitcode(recording.status)
    return {
        "schema": SCHEMA,
        "command": list(recording.command),
        "exit_code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "processes": [_process(process) for process in recording.processes],
        "sum": _sum(recording),
        "without_cuda": recording.others,
        "unserved": recording.unserved,
        "not_recorded": [
            {"pid": program.pid, "program": program.program, "reason": program.reason}
            for program in recording.not_recorded
        ],
        "trace": _trace(recording.traced) if isinstance(recording.traced, Traced) else None,
    }


def _trace(traced: Traced) -> dict[str, Any]:
    return {
        "file": str(traced.path),
        "batches": traced.batches,
        "descriptors": traced.descriptors,
        "skipped": traced.skipped,
    }


def _process(process: ProcessEvidence) -> dict[str, Any]:
    evidence = process.evidence
    return {
        "pid": process.pid,
        "parent": process.parent,
        "program": process.program,
        "name": process.name,
        "path": evidence.path.value,
        **_counts(_sites(evidence)),
        "callers": [_caller(file, evidence) for file in _callers(evidence)],
        "owners": _owners(evidence),
        "versions": [_version(query) for query in evidence.version_queries if query.under_test],
        "lookups": [_lookup(lookup) for lookup in _batch_lookups(evidence)],
        "streams": len(
            {call.stream for call in evidence.calls if call.under_test and call.stream is not None}
        ),
        "mismatches": [_call(call) for call in evidence.mismatches],
        "unfinished": [_call(call) for call in evidence.in_flight],
        "fault": None if evidence.fault is None else _fault(evidence.fault),
        "injections": [
            {"rule": rule.rule, "seen": rule.seen, "fired": rule.fired} for rule in evidence.injections
        ],
        "lost": evidence.lost,
    }


def _sites(evidence: Evidence) -> list[Site]:
    return [site for site in evidence.sites if site.under_test]


def _callers(evidence: Evidence) -> list[str]:
    return sorted({site.caller for site in _sites(evidence)})


def _counts(sites: Iterable[Site]) -> dict[str, Any]:
    sites = list(sites)
    batch = [site for site in sites if site.is_batch]
    return {
        "abis": sorted({BatchAbi.of_parameters(site.given).value for site in batch if site.given}),
        "calls": {
            "batch": sum(site.calls for site in batch),
            "per_copy": sum(site.calls for site in sites if not site.is_batch),
        },
        "descriptors": sum(site.descriptors for site in batch),
        "largest_batch": max((site.largest for site in batch), default=0),
        "errors": [
            {"function": site.function, "count": site.errors, "last_code": site.last_error}
            for site in sites
            if site.errors
        ],
    }


def _caller(file: str, evidence: Evidence) -> dict[str, Any]:
    """Return what one object of the program did, and by which path: any single copy is a fallback."""
    own = [site for site in _sites(evidence) if site.caller == file]
    counts = _counts(own)
    if counts["calls"]["per_copy"]:
        path = CopyPath.FALLBACK
    else:
        path = CopyPath.BATCH if any(site.returned > site.errors for site in own) else CopyPath.NONE
    return {"file": file, "path": path.value, **counts}


def _owners(evidence: Evidence) -> list[str]:
    return sorted({site.callee for site in _sites(evidence) if site.is_batch})


def _batch_lookups(evidence: Evidence) -> list[Lookup]:
    ours = {site.caller for site in _sites(evidence)}
    return [
        lookup
        for lookup in evidence.lookups
        if "MemcpyBatchAsync" in lookup.name and (lookup.caller.file in ours or lookup.found is None)
    ]


def _version(query: VersionQuery) -> dict[str, Any]:
    return {
        "function": query.function,
        "caller": _place(query.caller),
        "owner": query.owner_file,
        "code": query.code,
        "version": query.version,
    }


def _lookup(lookup: Lookup) -> dict[str, Any]:
    return {
        "function": lookup.function,
        "name": lookup.name,
        "version": lookup.version,
        "flags": lookup.flags,
        "code": lookup.code,
        "caller": _place(lookup.caller),
        "found": None if lookup.found is None else _place(lookup.found),
    }


def _call(call: Call) -> dict[str, Any]:
    return {
        "function": call.function,
        "caller": _place(call.caller),
        "callee": _place(call.callee),
        "given": call.given,
        "taken": call.taken,
        "stream": call.stream,
        "count": call.count,
        "returned": call.returned,
    }


def _fault(fault: Fault) -> dict[str, Any]:
    place = None if fault.place is None else _place(fault.place)
    return {"signal": fault.signal, "address": fault.address, "place": place}


def _place(location: Location) -> dict[str, Any]:
    return {"file": location.file, "offset": location.offset, "symbol": location.symbol}


def _sum(recording: Recording) -> dict[str, Any]:
    evidence = [process.evidence for process in recording.processes]
    return {
        "path": _path_of(evidence, complete=not recording.unserved).value,
        **_counts(site for each in evidence for site in _sites(each)),
        "owners": sorted({owner for each in evidence for owner in _owners(each)}),
        "mismatches": sum(len(each.mismatches) for each in evidence),
        "unfinished": sum(len(each.in_flight) for each in evidence),
    }


def _path_of(evidence: list[Evidence], *, complete: bool) -> CopyPath:
    """Return the path of all together: any fallback is one, and what is not known of one is not known."""
    paths = {each.path for each in evidence}
    if CopyPath.UNKNOWN in paths or not complete:
        return CopyPath.UNKNOWN
    return next((path for path in (CopyPath.FALLBACK, CopyPath.BATCH) if path in paths), CopyPath.NONE)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the recording as lines of text."""
    status = exit_status(recording)
    others = f"; {recording.others} more made no call" if recording.others else ""
    yield f"processes that use CUDA: {len(recording.processes)}{others}; exit status {status}"
    for process in recording.processes:
        yield from _process_lines(process)
    if len(recording.processes) > 1:
        total = _sum(recording)
        yield f"sum: path {total['path']}, {_count_line(total)}"
    if recording.unserved:
        yield f"lost: {recording.unserved} processes found no place, so nothing is known of them"
    if isinstance(recording.traced, Traced):
        traced = recording.traced
        yield (
            f"trace: {traced.path}, {traced.batches} batches with {traced.descriptors} descriptors, "
            f"{traced.skipped} batches left out"
        )
    for program in recording.not_recorded:
        yield f"not recorded: {program.program} (pid {program.pid}): {program.reason}"


def _process_lines(process: ProcessEvidence) -> Iterator[str]:
    evidence = process.evidence
    data = _process(process)
    head = f"{process.pid} {process.program} (parent {process.parent})"
    kept = sum(call.under_test for call in evidence.calls)
    kept_all = kept == evidence.batch_count + evidence.per_copy_count
    streams = f"{'' if kept_all else 'at least '}{data['streams']}"  # the first and last calls say which
    yield f"{head}: path {data['path']}, streams {streams}"
    for caller in data["callers"]:
        yield f"  {_name(caller['file'])}: {caller['path']}, {_count_line(caller)}"
    for owner in data["owners"]:
        yield f"  batch function of {owner}"
    for query in data["versions"]:
        answer = query["version"] if query["version"] is not None else f"code {query['code']}"
        caller, owner = _name(query["caller"]["file"]), _name(query["owner"])
        yield f"  {query['function']} by {caller}: {answer} from {owner}"
    for lookup in data["lookups"]:
        yield f"  {_lookup_line(lookup)}"
    for call in evidence.mismatches:
        yield f"  wrong ABI: {_call_line(call)}"
    for call in evidence.in_flight:
        yield f"  did not return: {_call_line(call)}"
    if evidence.fault is not None:
        yield f"  {_fault_line(evidence.fault)}"
    for rule in data["injections"]:
        yield f"  injected {rule['rule']}: {rule['fired']} of {rule['seen']} calls"
    if evidence.lost:
        yield f"  incomplete: {evidence.lost} things could not be recorded"


def _count_line(data: dict[str, Any]) -> str:
    calls = data["calls"]
    parts = [f"{calls['batch']} batch calls", f"{calls['per_copy']} single copies"]
    if calls["batch"]:
        abis = ", ".join(data["abis"]) or "unknown ABI"
        parts[0] += f" ({abis}; {data['descriptors']} descriptors, at most {data['largest_batch']} in one)"
    parts += [
        f"{error['count']} errors of {error['function']}, the last {error['last_code']}"
        for error in data["errors"]
    ]
    return ", ".join(parts)


def _lookup_line(lookup: dict[str, Any]) -> str:
    found = lookup["found"]
    answer = "nothing" if found is None else f"{found['symbol']} of {_name(found['file'])}"
    version = f", {lookup['version']}" if lookup["version"] else ""
    return (
        f"{lookup['function']}({lookup['name']}{version}) by {_name(lookup['caller']['file'])}: "
        f"{answer}, code {lookup['code']}"
    )


def _call_line(call: Call) -> str:
    given = f" with {call.given} parameters" if call.given else ""
    taken = f", which takes {call.taken}" if call.taken else ""
    return (
        f"{call.function} of {_name(call.callee.file)}{taken}, called{given} by "
        f"{_name(call.caller.file)}+{call.caller.offset:#x}"
    )


def _fault_line(fault: Fault) -> str:
    place = "" if fault.place is None else f" in {_name(fault.place.file)}+{fault.place.offset:#x}"
    address = "" if fault.address is None else f", which wanted {fault.address:#x}"
    return f"{fault.signal}{place}{address}"


def _name(file: str) -> str:
    return PurePath(file).name
