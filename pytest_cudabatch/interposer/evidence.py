"""What the interposer saw in one process, as plain values: who called what, how, and what came of it.

"The code under test" is every caller that is not itself a libcudart or a libcuda: a libcudart calls its
driver too, and those calls are recorded, but they say nothing about an implementation.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeVar

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer.injections import AppliedInjection

__all__ = [
    "Binding",
    "Call",
    "Capabilities",
    "CopyPath",
    "Evidence",
    "Fault",
    "Location",
    "Lookup",
    "MappedObject",
    "Owner",
    "Site",
    "VersionQuery",
    "owner_of",
]

_RUNTIME = re.compile(r"libcudart\.so(?:\.(\d+))?")
_DRIVER = re.compile(r"libcuda\.so(?:\.\d+)*")
_BATCH = re.compile(r"cu(?:da)?Memcpy(3D)?BatchAsync(_v2)?(?:_ptsz)?")
_VERSION_QUERY = re.compile(r"cu(?:da)?(?:Driver|Runtime)GetVersion")


class CopyPath(enum.Enum):
    """How the bytes went."""

    BATCH = "batch"
    FALLBACK = "fallback"
    NONE = "none"
    UNKNOWN = "unknown"


class Owner(str, enum.Enum):
    """Whose function was called. A shim is any other library that defines it, such as a GPU-sharing layer."""

    RUNTIME = "runtime"
    DRIVER = "driver"
    SHIM = "shim"


@dataclass(frozen=True)
class MappedObject:
    """A mapped file that the evidence mentions. ``soname`` is "" where it has none."""

    file: str
    soname: str
    base: int

    @property
    def name(self) -> str:
        """What the dynamic linker knows it by: the SONAME, else the file's name."""
        return self.soname or PurePath(self.file).name

    @property
    def runtime_major(self) -> int | None:
        """12 for libcudart.so.12; None for what is no libcudart, or says no version."""
        match = _RUNTIME.match(self.name)
        return int(match[1]) if match and match[1] else None


def owner_of(mapped: MappedObject) -> Owner:
    """Judge a library by its SONAME, which stays when a file is renamed or versioned."""
    if _RUNTIME.match(mapped.name):
        return Owner.RUNTIME
    return Owner.DRIVER if _DRIVER.fullmatch(mapped.name) else Owner.SHIM


@dataclass(frozen=True)
class Location:
    """A place in a file: ``offset`` as nm and addr2line count it; ``symbol`` where it is known."""

    file: str
    offset: int
    symbol: str | None = None


@dataclass(frozen=True)
class Call:
    """One copy call. ``returned`` is None where the call never returned.

    ``given`` is how many parameters a batch call was made with, ``taken`` how many the called function has
    (9 or 8; 5 or 4 for a batch of 3D copies); None where that is not known, and always for a single copy.
    ``count`` is in descriptors. ``injected``: a rule returned the code and the function was not called.
    ``arguments_right`` is known of injected batch calls where the process said what memory they are about:
    a live stream, ranges inside that memory, valid attributes.
    """

    sequence: int
    function: str
    caller: Location
    callee: Location
    given: int | None
    taken: int | None
    stream: int | None
    count: int | None
    returned: int | None
    owner: Owner
    under_test: bool
    thread: int
    injected: bool = False
    arguments_right: bool | None = None

    @property
    def is_batch(self) -> bool:
        """Whether this is a batch call, not a single copy."""
        return _BATCH.fullmatch(self.function) is not None


@dataclass(frozen=True)
class Lookup:
    """One answer of cuGetProcAddress or cudaGetDriverEntryPoint about a watched name.

    ``version`` is what was asked for (12080 is CUDA 12.8), 0 where the function has no such parameter.
    ``found`` is None for an error and for a success with NULL. ``injected``: a rule answered, or hung or
    crashed in its place, where ``code`` is None.
    """

    function: str
    name: str
    version: int
    flags: int
    code: int | None
    caller: Location
    found: Location | None
    injected: bool = False


@dataclass(frozen=True)
class Binding:
    """The dynamic linker gave ``caller`` (a file) the function's address.

    ``via`` says how: ``plt``; ``dlsym`` (or dlvsym); ``relocation``, for a pointer to the function, as code
    built with -fno-plt or with the address in a constant has it; ``unseen``, for a pointer that could not be
    taken over, so that calls by it are not recorded (``callee`` is then "[unknown]" where it is not known).

    ``injected``: a rule made dlsym answer NULL, although ``callee`` is there, or answer ``function`` where
    its counterpart of the other ABI was asked for.
    """

    function: str
    caller: str
    callee: Location
    via: str
    injected: bool = False


@dataclass(frozen=True)
class Capabilities:
    """Which kinds of bindings the dynamic linker reported in the process; None: there was no occasion.

    ``now`` is bindings while an object is relocated (bind-now, and pointers), for which the interposer has
    another way where it is False; ``lazy`` is a PLT's first call, ``dlsym`` dlsym and dlvsym.
    """

    lazy: bool | None = None
    now: bool | None = None
    dlsym: bool | None = None


@dataclass(frozen=True)
class VersionQuery:
    """One answer of cudaDriverGetVersion, cuDriverGetVersion or cudaRuntimeGetVersion; equal ones once.

    ``owner_file`` is the library that answered. ``version`` is as CUDA counts it (12080 is 12.8), None where
    the code is not 0 or a rule answered (``injected``), which leaves the caller's variable as it was. Where
    the rule hung or crashed, ``code`` is None.
    """

    function: str
    caller: Location
    owner_file: str
    code: int | None
    version: int | None
    under_test: bool
    injected: bool = False

    @property
    def parameters(self) -> int | None:
        """How many parameters the batch function of a runtime of this version has; None for a driver's."""
        if self.function != "cudaRuntimeGetVersion" or self.version is None:
            return None
        return CudaVersion.from_api(self.version).abi.parameters


@dataclass(frozen=True)
class Fault:
    """The first fatal signal (``"SIGSEGV"``, …) that met no handler installed after the slot was claimed.

    ``place`` is the instruction that failed, ``address`` the data that it wanted; None where the kernel does
    not tell (an address outside of what the processor can address), where no data is concerned, and for a
    signal that was sent, as by abort(). ``thread`` is as in a call. The process may have survived it.
    """

    signal: str
    address: int | None
    place: Location | None
    thread: int


@dataclass(frozen=True)
class Site:
    """Counts of all calls alike, also of those that are no longer kept in full. ``errors`` returned not 0.

    ``descriptors`` are those of all the calls together, ``largest`` the most of one call; ``last_error`` is
    the code of the latest call that returned not 0.
    """

    function: str
    caller: str
    callee: str
    given: int | None
    under_test: bool
    calls: int
    returned: int
    errors: int
    descriptors: int = 0
    largest: int = 0
    last_error: int | None = None

    @property
    def is_batch(self) -> bool:
        """Whether these are batch calls, not single copies."""
        return _BATCH.fullmatch(self.function) is not None


def _is_under_test(file: str) -> bool:
    """Whether a caller is neither a libcudart nor a libcuda, judged by its file's name."""
    name = PurePath(file).name
    return not (_RUNTIME.match(name) or _DRIVER.fullmatch(name))


def parameters_taken(function: str, callee: MappedObject) -> int | None:
    """How many parameters the called batch function has: by its owner's version, or by its driver name."""
    match = _BATCH.fullmatch(function)
    if match is None:
        return None
    with_fail_index, without = (5, 4) if match[1] else (9, 8)
    if function.startswith("cuda"):
        major = callee.runtime_major
        return None if major is None else (with_fail_index if major <= 12 else without)
    return without if match[2] else with_fail_index


@dataclass(frozen=True)
class Evidence:
    """One process's evidence. Without ``recorded`` the interposer was not at work and nothing is known.

    ``calls`` holds the first and last calls of each kind; ``sites`` counts all. ``lost`` is how often
    something watched could not be recorded: above 0 the evidence is incomplete. ``injections`` are the rules
    that were requested, in order, with what came of each. ``layers`` are the shims whose functions others
    call: what they call in turn, they pass on, so it is not an implementation's own. ``fault`` is None
    where none is known.
    """

    recorded: bool
    lost: int
    objects: tuple[MappedObject, ...]
    bindings: tuple[Binding, ...]
    lookups: tuple[Lookup, ...]
    calls: tuple[Call, ...]
    sites: tuple[Site, ...]
    version_queries: tuple[VersionQuery, ...] = ()
    injections: tuple[AppliedInjection, ...] = ()
    layers: tuple[str, ...] = ()
    capabilities: Capabilities = Capabilities()
    fault: Fault | None = None

    def batch_calls(self) -> tuple[Call, ...]:
        """Return the batch calls of the code under test, in order, as far as they are kept in full."""
        return tuple(call for call in self.calls if call.under_test and call.is_batch)

    def batch_lookups(self) -> tuple[Lookup, ...]:
        """Return the look-ups of a batch function by the code under test."""
        return tuple(
            lookup
            for lookup in self.lookups
            if _BATCH.fullmatch(lookup.name) and _is_under_test(lookup.caller.file)
        )

    def refused_lookups(self) -> tuple[Lookup, ...]:
        """Return those of them that failed or gave NULL."""
        return tuple(
            lookup for lookup in self.batch_lookups() if lookup.found is None and lookup.code is not None
        )

    def batch_bindings(self) -> tuple[Binding, ...]:
        """Return the bindings of a batch function for the code under test, by the dynamic linker or dlsym."""
        return tuple(
            binding
            for binding in self.bindings
            if _BATCH.fullmatch(binding.function) and _is_under_test(binding.caller)
        )

    @property
    def batch_count(self) -> int:
        """How many batch calls the code under test made."""
        return sum(site.calls for site in self.sites if site.under_test and site.is_batch)

    @property
    def per_copy_count(self) -> int:
        """How many single asynchronous copies the code under test made."""
        return sum(site.calls for site in self.sites if site.under_test and not site.is_batch)

    @property
    def injected(self) -> int:
        """How often a rule took effect."""
        return sum(injection.fired for injection in self.injections)

    @property
    def unseen(self) -> tuple[Binding, ...]:
        """Bindings of the code under test by which it may copy, or ask for functions, without being seen."""
        return tuple(
            binding
            for binding in self.bindings
            if binding.via == "unseen"
            and _is_under_test(binding.caller)
            and not _VERSION_QUERY.fullmatch(binding.function)
        )

    @property
    def is_complete(self) -> bool:
        """Whether whatever the code under test copied is counted here."""
        reported = self.capabilities.lazy is not False and self.capabilities.dlsym is not False
        return self.recorded and not self.lost and not self.unseen and reported

    @property
    def path(self) -> CopyPath:
        """How the bytes went. Any single copy makes it a fallback; a batch counts when it returned 0."""
        if not self.is_complete:
            return CopyPath.UNKNOWN
        if self.per_copy_count:
            return CopyPath.FALLBACK
        batches = (site for site in self.sites if site.under_test and site.is_batch)
        return CopyPath.BATCH if any(site.returned > site.errors for site in batches) else CopyPath.NONE

    @property
    def abi_called(self) -> BatchAbi | None:
        """The ABI by which the code under test called; None where it used both, neither, or it is unknown."""
        batches = (site for site in self.sites if site.under_test and site.is_batch)
        abis = {BatchAbi.of_parameters(site.given) for site in batches if site.given}
        return abis.pop() if len(abis) == 1 else None

    @property
    def mismatches(self) -> tuple[Call, ...]:
        """Batch calls, by the code under test or a shim, with another number of parameters than are taken."""
        return tuple(
            call
            for call in self.calls
            if call.is_batch
            and (call.under_test or call.caller.file in self.layers)
            and call.given
            and call.taken
            and call.given != call.taken
        )

    @property
    def in_flight(self) -> tuple[Call, ...]:
        """The calls, by anybody, that had not returned at the end; the innermost of a thread comes last."""
        return tuple(call for call in self.calls if call.returned is None)

    @property
    def last_call(self) -> Call | None:
        """The latest call of the code under test that had not returned at the end."""
        return next((call for call in reversed(self.in_flight) if call.under_test), None)

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON values, for crossing processes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Evidence:
        """Read what to_json wrote. Raises EvidenceError for anything else."""
        try:
            return cls(
                recorded=bool(value["recorded"]),
                lost=int(value["lost"]),
                objects=_rows(MappedObject, value["objects"]),
                bindings=_rows(Binding, value["bindings"]),
                lookups=_rows(Lookup, value["lookups"]),
                calls=_rows(Call, value["calls"]),
                sites=_rows(Site, value["sites"]),
                version_queries=_rows(VersionQuery, value["version_queries"]),
                injections=_rows(AppliedInjection, value["injections"]),
                layers=tuple(str(file) for file in value["layers"]),
                capabilities=Capabilities(**value["capabilities"]),
                fault=_row(Fault, value["fault"]) if value["fault"] is not None else None,
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise EvidenceError(f"not evidence as to_json writes it: {problem!r}") from problem


_Row = TypeVar("_Row")


def _rows(kind: type[_Row], values: Sequence[Mapping[str, Any]]) -> tuple[_Row, ...]:
    return tuple(_row(kind, row) for row in values)


def _row(kind: type[_Row], row: Mapping[str, Any]) -> _Row:
    return kind(**{name: _value(name, value) for name, value in row.items()})


def _value(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return Location(**value)
    return Owner(value) if name == "owner" else value
