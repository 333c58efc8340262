"""What the supervisor hands to a test's process besides its node id."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["PAYLOAD", "SPENT"]

PAYLOAD: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
"""In a child, ``config.stash[PAYLOAD]`` is the payload of ``Zygote.run``, set before the item's protocol
starts. It is absent in every other process, so its presence says that this process is a cell."""

SPENT: pytest.StashKey[str] = pytest.StashKey()
"""Set in a child's ``config.stash`` by whoever finds that its process can run no other test: the reason."""
