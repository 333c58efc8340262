"""From a name to an implementation, in two steps.

``check`` runs in the controller and imports nothing of the code under test; ``load`` runs in the child,
after the interposer and the runtime are in place. A name is one of BUILTIN, the name of an entry point
of group ENTRY_POINT_GROUP, or ``module:attribute``.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from importlib.metadata import entry_points
from operator import attrgetter

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.implementations.builtin import BUILTIN
from pytest_cudabatch.implementations.protocol import Implementation

__all__ = ["ENTRY_POINT_GROUP", "check", "load", "names"]

ENTRY_POINT_GROUP = "pytest_cudabatch.implementations"

_REFERENCE = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*(\.[^\W\d]\w*)*)")


def names() -> tuple[str, ...]:
    """Return the names that exist here: ours first, then those of installed entry points."""
    return (*BUILTIN, *sorted(entry_points(group=ENTRY_POINT_GROUP).names - BUILTIN.keys()))


def check(name: str) -> None:
    """Raise UsageError unless ``name`` can stand for an implementation; imports none.

    A name that leads into a module passes if the module's top-level package is found. What that
    package does when it is imported shows in the child.
    """
    if name not in BUILTIN:
        module, _ = _locate(name)
        top = module.partition(".")[0]
        if not _is_found(top):
            raise UsageError(f"implementation {name!r}: there is no module {top!r} to import")


def load(name: str) -> Implementation:
    """Return the implementation called ``name``, importing its module if it has one.

    Raises UsageError for an unknown name, ImportError where the module has no such attribute, TypeError
    where that is no Implementation, and whatever the import itself raises.
    """
    if name in BUILTIN:
        return BUILTIN[name].build(name)
    module, attribute = _locate(name)
    try:
        found: object = attrgetter(attribute)(importlib.import_module(module))
    except AttributeError as error:
        raise ImportError(f"implementation {name!r}: {error}", name=module) from error
    if not isinstance(found, Implementation):
        raise TypeError(
            f"implementation {name!r} is {found!r}, which lacks one of: name, expected_path, open"
        )
    return found


def _locate(name: str) -> tuple[str, str]:
    """Return module and attribute that ``name`` stands for; raise UsageError where it stands for none."""
    for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return point.module, point.attr
    reference = _REFERENCE.fullmatch(name)
    if reference is None or name.startswith("specimen:"):
        raise UsageError(
            f"there is no implementation {name!r}; known here: {', '.join(names())}; "
            "or write module:attribute of a Python object"
        )
    return reference["module"], reference["attribute"]


def _is_found(top_level_module: str) -> bool:
    try:
        return importlib.util.find_spec(top_level_module) is not None
    except ValueError:  # a loaded module without a spec, such as __main__, does exist
        return True
