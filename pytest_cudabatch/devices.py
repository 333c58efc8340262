"""Which of the caller's GPUs an xdist worker gets: a share of CUDA_VISIBLE_DEVICES, by the same names."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["VARIABLE", "share", "visible"]

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(value: str | None, count: int) -> list[str]:
    """Return the names of the devices that ``value`` of the variable makes visible, in its order.

    ``count`` is how many the driver sees with this value; None is no value, and all of the host. Names stay
    as they are: numbers, ``GPU-`` UUIDs or parts of them, ``MIG-`` instances. As CUDA has it, nothing counts
    from the first name on that is none, such as -1, or was there before.
    """
    if value is None:
        return [str(number) for number in range(count)]
    names: list[str] = []
    for name in (part.strip() for part in value.split(",")):
        if name in names or not (name.isdecimal() or name.startswith(("GPU-", "MIG-"))):
            break
        names.append(name)
    # Of several MIG instances a process sees the first alone; what else the driver does not see is not there.
    return names if any(name.startswith("MIG-") for name in names) else names[:count]


def share(devices: Sequence[str], worker: int, workers: int) -> list[str]:
    """Return the devices of one of ``workers`` (counted from 0): no two share one while there are enough.

    A worker that replaces a dead one has a number beyond the others'.
    """
    if len(devices) <= workers:
        return [devices[worker % len(devices)]] if devices else []
    return list(devices[worker % workers :: workers])
