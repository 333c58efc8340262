"""What a cell tells its supervisor, which cannot see it from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_cudabatch.finding_codes import Code

__all__ = ["Blame", "telling_import_failure"]

ANNOUNCED_PATH = "cudabatch_announced_path"
RETURNED_CODE = "cudabatch_returned_code"
IMPORT_FAILURE = "cudabatch_import_failure"
BLAMED_FINDING = "cudabatch_blamed_finding"
ENVIRONMENT_FINDING = "cudabatch_environment_finding"
LOST_CONTEXT = "cudabatch_lost_context"
TOLD = (
    ANNOUNCED_PATH,
    RETURNED_CODE,
    IMPORT_FAILURE,
    BLAMED_FINDING,
    ENVIRONMENT_FINDING,
    LOST_CONTEXT,
)
"""User properties by which a cell tells its supervisor what it cannot see from outside."""


class Blame:
    """The ``cuda_finding`` fixture: says which finding a failing assertion stands for.

    ``with cuda_finding("unchecked-return"): assert code == 1``. The innermost block that fails decides.
    """

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    @contextmanager
    def __call__(self, code: str) -> Iterator[None]:
        """Attribute an AssertionError inside the block to the finding ``code``.

        Raises ValueError for a code that is none of :class:`pytest_cudabatch.findings.Code`.
        """
        known = Code(code)
        try:
            yield
        except AssertionError:
            if all(name != BLAMED_FINDING for name, _ in self._node.user_properties):
                self._node.user_properties.append((BLAMED_FINDING, known.value))
            raise


@contextmanager
def telling_import_failure(node: pytest.Item) -> Iterator[None]:
    """Tell the supervisor of whatever ends the block early: the implementation cannot be loaded."""
    try:
        yield
    except (Exception, SystemExit) as failure:  # foreign code may raise anything; it is passed on
        node.user_properties.append((IMPORT_FAILURE, f"{type(failure).__name__}: {failure}"))
        raise
