"""Arrays that end where readable memory does, so that whoever reads on faults at once."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["before_a_hole"]

_NO_ACCESS = 0  # PROT_NONE of <sys/mman.h>


def before_a_hole(array: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a read-only copy of ``array`` behind whose last element lies a page that nobody may touch.

    Raises OSError where the page cannot be protected.
    """
    pages = -(-array.nbytes // mmap.PAGESIZE)
    mapping = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    hole = ctypes.addressof(ctypes.c_char.from_buffer(mapping)) + pages * mmap.PAGESIZE
    library = ctypes.CDLL(None, use_errno=True)
    if library.mprotect(ctypes.c_void_p(hole), ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS) != 0:
        raise OSError(ctypes.get_errno(), "a page cannot be protected")
    start = pages * mmap.PAGESIZE - array.nbytes
    copied = np.frombuffer(mapping, dtype=array.dtype, count=len(array), offset=start)
    copied[:] = array
    copied.setflags(write=False)
    return copied
