"""What evidence consists of: calls, look-ups, bindings and the like, as plain values."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import PurePath

from pytest_cudabatch.abi import CudaVersion

__all__ = [
    "Binding",
    "Call",
    "Capabilities",
    "CopyPath",
    "Fault",
    "Location",
    "Lookup",
    "MappedObject",
    "Owner",
    "Site",
    "VersionQuery",
    "is_batch_function",
    "is_cuda_file",
    "is_version_query",
    "owner_of",
    "parameters_taken",
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
        return is_batch_function(self.function)


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
        return is_batch_function(self.function)


def is_batch_function(name: str) -> bool:
    """Whether the function copies batches, 1D or 3D, of either ABI and on whichever default stream."""
    return _BATCH.fullmatch(name) is not None


def is_version_query(name: str) -> bool:
    """Whether the function says which CUDA a driver or a runtime is."""
    return _VERSION_QUERY.fullmatch(name) is not None


def is_cuda_file(file: str) -> bool:
    """Whether a file is a libcudart or a libcuda, judged by its name."""
    name = PurePath(file).name
    return bool(_RUNTIME.match(name) or _DRIVER.fullmatch(name))


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
