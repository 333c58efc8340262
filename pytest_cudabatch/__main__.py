"""``python -m pytest_cudabatch``: the same as the ``cudabatch`` command."""

from __future__ import annotations

import sys

from pytest_cudabatch.commands import main

if __name__ == "__main__":
    sys.exit(main())
