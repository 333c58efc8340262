"""What adapters of PyTorch extensions have in common: torch's streams and tensors over our own memory.

torch is imported when an implementation is opened, in the cell, where the pairing's runtime and driver are
loaded already: by their SONAMEs they then serve torch as well.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_cudabatch.cuda import DeviceBuffer, PinnedBuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TORCH_STREAMS", "Torch", "torch_cuda_major"]

TORCH_STREAMS = (0x0, 0x2)
"""The special handles that torch can name: its own encoding of streams takes 0x1 for something else."""

_CUDA_OF_TORCH = re.compile(r"^cuda(?:: [^=]+)? = ['\"](\d+)\.", re.MULTILINE)
_NUMBERED = re.compile(r"\berror (\d{1,3})\b")

NO_CODE = 998
"""No value of cudaError_t; all that a call may answer are below it, cudaErrorUnknown apart."""


def torch_cuda_major() -> int | None:
    """Return the major CUDA version that the installed torch was built for, without importing it.

    None where torch is not installed, or was built without CUDA.
    """
    spec = find_spec("torch")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        version = Path(place, "version.py")
        if version.is_file() and (found := _CUDA_OF_TORCH.search(version.read_text(encoding="utf-8"))):
            return int(found[1])
    return None


@dataclass(frozen=True)
class _CudaArray:
    """Device memory as other libraries take it over without a copy (the CUDA Array Interface, version 2)."""

    buffer: DeviceBuffer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.buffer.nbytes,),
            "typestr": "|u1",
            "data": (self.buffer.address, False),
            "version": 2,
        }


class Torch:
    """torch, imported and with its CUDA initialised. Raises ImportError where it is not installed."""

    def __init__(self) -> None:
        import torch  # noqa: PLC0415 - in the cell only

        self.torch = torch
        torch.cuda.init()

    def stream(self, handle: int) -> AbstractContextManager[Any]:
        """Make the stream ``handle`` (from cudaStreamCreate, or one of TORCH_STREAMS) torch's current one."""
        cuda = self.torch.cuda
        stream: AbstractContextManager[Any] = cuda.stream(
            cuda.ExternalStream(handle) if handle else cuda.default_stream()
        )
        return stream

    def bytes(self, buffer: DeviceBuffer | PinnedBuffer) -> Any:
        """Return a uint8 tensor over ``buffer``'s own memory."""
        if isinstance(buffer, PinnedBuffer):
            return self.torch.from_numpy(buffer.bytes)
        return self.torch.as_tensor(_CudaArray(buffer), device="cuda")

    def integers(self, values: NDArray[Any]) -> Any:
        """Return an int64 tensor over the memory of ``values``, 64-bit integers; they must outlive it."""
        if len(values) == 0:
            return self.torch.empty(0, dtype=self.torch.int64)
        words = (ctypes.c_int64 * len(values)).from_address(values.ctypes.data)
        return self.torch.frombuffer(words, dtype=self.torch.int64)

    def code_of(self, error: RuntimeError) -> int:
        """Return the cudaError_t that an operator's exception names, by number or text; else raise it."""
        if numbered := _NUMBERED.search(str(error)):
            return int(numbered[1])
        named = [(text, code) for text, code in _error_texts().items() if text in str(error)]
        if not named:
            raise error
        return max(named, key=lambda pair: len(pair[0]))[1]


def _error_texts() -> dict[str, int]:
    """Return the loaded runtime's names and texts of all error codes."""
    runtime = ctypes.CDLL(f"libcudart.so.{torch_cuda_major()}")
    texts: dict[str, int] = {}
    for function in (runtime.cudaGetErrorString, runtime.cudaGetErrorName):
        function.restype = ctypes.c_char_p
        unknown = function(NO_CODE)
        for code in range(1, NO_CODE):
            if (text := function(code)) != unknown:
                texts[text.decode()] = code
    return texts
