"""The code under test: what it must offer, how it is found, and our own reference and specimens."""

from pytest_cudabatch.implementations.builtin import BUILTIN
from pytest_cudabatch.implementations.capabilities import (
    ANYTHING,
    Capabilities,
    NotCapable,
    capabilities_of,
)
from pytest_cudabatch.implementations.linked import LinkedSharedObject
from pytest_cudabatch.implementations.protocol import (
    BoundImplementation,
    ExpectedPath,
    Implementation,
    Linkable,
    Linkage,
    PairingRoutes,
    Route,
)
from pytest_cudabatch.implementations.registry import ENTRY_POINT_GROUP, check, load, names
from pytest_cudabatch.implementations.shared_object import SharedObject

__all__ = [
    "ANYTHING",
    "BUILTIN",
    "ENTRY_POINT_GROUP",
    "BoundImplementation",
    "Capabilities",
    "ExpectedPath",
    "Implementation",
    "Linkable",
    "Linkage",
    "LinkedSharedObject",
    "NotCapable",
    "PairingRoutes",
    "Route",
    "SharedObject",
    "capabilities_of",
    "check",
    "load",
    "names",
]
