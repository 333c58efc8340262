"""What the interposer saw in one process, as plain values: who called what, how, and what came of it.

"The code under test" is every caller that is not itself a libcudart or a libcuda: a libcudart calls its
driver too, and those calls are recorded, but they say nothing about an implementation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer.injections import AppliedInjection
from pytest_cudabatch.interposer.observations import (
    Binding,
    Call,
    Capabilities,
    CopyPath,
    Fault,
    Location,
    Lookup,
    MappedObject,
    Owner,
    Site,
    VersionQuery,
    is_batch_function,
    is_cuda_file,
    is_version_query,
)

__all__ = ["Evidence"]


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
    capabilities: Capabilities = field(default_factory=Capabilities)
    fault: Fault | None = None

    def batch_calls(self) -> tuple[Call, ...]:
        """Return the batch calls of the code under test, in order, as far as they are kept in full."""
        return tuple(call for call in self.calls if call.under_test and call.is_batch)

    def batch_lookups(self) -> tuple[Lookup, ...]:
        """Return the look-ups of a batch function by the code under test."""
        return tuple(
            lookup
            for lookup in self.lookups
            if is_batch_function(lookup.name) and not is_cuda_file(lookup.caller.file)
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
            if is_batch_function(binding.function) and not is_cuda_file(binding.caller)
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
            and not is_cuda_file(binding.caller)
            and not is_version_query(binding.function)
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
