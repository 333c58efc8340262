"""Our own implementations: the reference, the baselines, and the specimens, each wrong in one way only.

Four specimens are right, and reach CUDA in a way that is hard to see: they show that it is seen.

Their C sources are in native/dispatch; what is said of a specimen is what its source says of its fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_cudabatch.implementations.linked import LinkedSharedObject
from pytest_cudabatch.implementations.protocol import Linkage, Route
from pytest_cudabatch.implementations.shared_object import SharedObject
from pytest_cudabatch.native import library

__all__ = ["BUILTIN", "Recipe"]

Builds = Literal["plain", "linked", "both"]

LINKS: tuple[tuple[Linkage, int], ...] = (("shared", 12), ("shared", 13), ("static", 12), ("static", 13))
"""The ways to link a runtime: how, and its major version."""


@dataclass(frozen=True)
class Recipe:
    """One of our implementations before its library is looked for.

    ``finding`` is the code of the finding that shows a specimen's fault, None for what is right. ``builds``
    says whether it has a build that links no runtime (``plain``), one for each way to link one (``linked``),
    or all of them (``both``).
    """

    library: str
    route: Route
    summary: str
    finding: str | None = None
    builds: Builds = "plain"

    @property
    def description(self) -> str:
        """What it does, and the finding that shows it if it is wrong."""
        return self.summary if self.finding is None else f"{self.summary} Finding: {self.finding}."

    def build(self, name: str) -> SharedObject | LinkedSharedObject:
        """Return the implementation. Raises InstallationError where its library was not built."""
        usual = None if self.builds == "linked" else library(f"implementations/lib{self.library}.so")
        if self.builds == "plain":
            assert usual is not None  # only a linked one lacks it
            return SharedObject(name, usual, self.route, self.description)
        builds = {
            (linkage, major): library(f"implementations/linked-{linkage}-{major}/lib{self.library}.so")
            for linkage, major in LINKS
        }
        return LinkedSharedObject(name, usual, builds, self.route, self.description)


def _specimen(
    name: str, route: Route, finding: str | None, fault: str, builds: Builds = "plain"
) -> tuple[str, Recipe]:
    return f"specimen:{name}", Recipe(f"specimen-{name}", route, fault, finding, builds)


_SPECIMENS = (
    _specimen(
        "driver-version",
        "runtime",
        "wrong-abi",
        "Picks the ABI by cudaDriverGetVersion, though the function is the runtime's: eight parameters "
        "for the nine of a 12.8 or 12.9 runtime on a 13.x driver.",
    ),
    _specimen(
        "dlsym-always-9",
        "runtime",
        "wrong-abi",
        "Calls whatever dlsym finds with nine parameters, as if it were compiled against CUDA 12: one "
        "too many for every 13.x runtime.",
    ),
    _specimen(
        "dlsym-always-8",
        "runtime",
        "wrong-abi",
        "Calls whatever dlsym finds with eight parameters, as if it were compiled against CUDA 13: one "
        "too few for the 12.8 and 12.9 runtimes.",
    ),
    _specimen(
        "linked-runtime-version",
        "runtime",
        "split-owner",
        "Takes the version from the runtime that it is linked with, and the function from the runtime that "
        "dlsym finds first: right unless another major version is visible before its own.",
        "linked",
    ),
    _specimen(
        "unchecked-null",
        "driver-first",
        "lookup-unchecked",
        "Calls what cuGetProcAddress gave without looking whether it gave anything: a jump to address 0 "
        "on drivers older than 12.8, and wherever a look-up fails or says success and NULL.",
    ),
    _specimen(
        "no-driver-guard",
        "runtime",
        "no-driver-guard",
        "Counts on a driver that has the function: returns a failed query of the driver's version, and "
        "36 or 35 from the batch call, instead of copying one by one.",
    ),
    _specimen(
        "silent-fallback",
        "driver-first",
        "silent-fallback",
        "Asks the driver for the function by the runtime's name, which no driver knows: always copies one "
        "by one, while it announces batches.",
    ),
    _specimen(
        "fallback-ignores-errors",
        "runtime",
        "unchecked-return",
        "Looks at no return code when it copies one by one, and returns 0 whatever became of the copies.",
    ),
    _specimen(
        "fallback-on-invalid",
        "runtime",
        "masked-error",
        'Copies one by one when the batch call answers "invalid value" (1), so that a wrong argument '
        "never shows.",
    ),
    _specimen(
        "leaves-last-error",
        "runtime",
        "error-left-behind",
        "Copies one by one when the batch call is not available, but leaves that call's error in "
        "cudaGetLastError.",
    ),
    _specimen(
        "default-stream",
        "runtime",
        "legacy-stream",
        "Passes the default stream, NULL or cudaStreamLegacy, to the batch call, which rejects it, and "
        "returns that error.",
    ),
    _specimen(
        "zero-size-unfiltered",
        "runtime",
        "zero-size",
        "Passes empty copies on to the batch call, which then rejects all of the batch.",
    ),
    _specimen(
        "no-capture-check",
        "runtime",
        "capture-lost",
        "Takes 900, the batch call's answer while the stream is captured, for success: the graph lacks the "
        "copies, and nobody is told.",
    ),
    _specimen(
        "straddles-registration",
        "runtime",
        "straddles-registration",
        "Merges neighbours into one copy, also where they lie in two registered ranges: the batch call "
        "rejects all of it.",
    ),
    _specimen(
        "overreads-attrs",
        "runtime",
        "overread",
        "Looks one size ahead when it makes up its attributes, and so reads behind the last one.",
    ),
    _specimen(
        "current-device",
        "runtime",
        "wrong-context",
        "Copies on a stream of its own of whichever device is current, and goes on without order where its "
        "events do not fit the caller's stream, which is another device's.",
    ),
    _specimen(
        "source-freed-early",
        "runtime",
        "source-freed-early",
        "Gathers small host sources by a host function of the stream, from a list that the next call "
        "overwrites, whether the function has run or not.",
    ),
    _specimen(
        "missing-order",
        "runtime",
        "missing-order",
        "Copies on a stream of its own that does not wait for the caller's, so that sources are read before "
        "queued work has written them.",
    ),
    _specimen(
        "returns-before-done",
        "runtime",
        "early-return",
        "Copies on a stream of its own for which the caller's does not wait, so that synchronising the "
        "caller's stream returns before the copies are done.",
    ),
    _specimen(
        "off-by-one",
        "runtime",
        "guard-overrun",
        "Makes the last copy that is not empty one byte longer than asked for.",
    ),
    _specimen(
        "swapped-pages",
        "runtime",
        "wrong-bytes",
        "Exchanges the destinations of the first two copies of one size that lie close together.",
    ),
    _specimen(
        "no-plt",
        "runtime",
        None,
        "Right, and built with -fno-plt: its calls go through pointers that relocations fill.",
    ),
    _specimen(
        "address-taken",
        "runtime",
        None,
        "Right, and calls through a constant table of addresses.",
    ),
    _specimen(
        "preloaded-dlsym",
        "runtime",
        None,
        "Right, behind a layer whose dlsym answers with a function of its own that passes the call on.",
    ),
    _specimen(
        "static-cudart",
        "driver-first",
        None,
        "Right, with a static runtime of its own, which takes its functions from the driver by look-up.",
    ),
)

BUILTIN: dict[str, Recipe] = {
    "reference": Recipe(
        "reference",
        "driver-first",
        "cudabatch_dispatch.h: asks the driver for the nine-parameter function by version, else takes "
        "function and version from one runtime, else copies one by one; at most 1,024 copies a call.",
        builds="both",
    ),
    "per-copy": Recipe(
        "per-copy", "per-copy", "A loop over cudaMemcpyAsync that stops at the first error: the baseline."
    ),
    "per-copy-coalesced": Recipe(
        "per-copy-coalesced",
        "per-copy",
        "As per-copy, but neighbours in the batch that are neighbours in source and destination become one.",
    ),
    **dict(_SPECIMENS),
}
"""Recipes by the name that ``--cuda-implementation`` takes."""
