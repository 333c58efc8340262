"""An xdist worker's GPUs, out of those that the caller made visible, by the caller's own names."""

from __future__ import annotations

import pytest

from pytest_cudabatch.devices import share, visible

MIG = ["MIG-6f1a0c2e-0000-5555-8888-aaaaaaaaaaaa", "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/2"]
GPU = ["GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-0badcafe"]


@pytest.mark.parametrize(
    ("value", "count", "names"),
    [
        (None, 0, []),
        (None, 3, ["0", "1", "2"]),
        ("", 0, []),
        ("-1", 0, []),
        ("NoDevFiles", 0, []),
        ("2", 1, ["2"]),
        (" 3 , 1 ", 2, ["3", "1"]),
        ("5,-1,6", 1, ["5"]),
        ("5,5,6", 1, ["5"]),
        ("0,7", 1, ["0"]),  # the host has no device 7
        (",".join(GPU), 2, GPU),
        (",".join(MIG), 1, MIG),  # a process sees the first instance alone
    ],
)
def test_what_the_caller_made_visible(value, count, names):
    assert visible(value, count) == names


@pytest.mark.parametrize(
    ("devices", "workers", "shares"),
    [
        ([], 2, [[], []]),
        (["4"], 3, [["4"], ["4"], ["4"]]),
        (["4", "2"], 2, [["4"], ["2"]]),
        (["4", "2"], 5, [["4"], ["2"], ["4"], ["2"], ["4"]]),
        (["0", "1", "2", "3", "4"], 2, [["0", "2", "4"], ["1", "3"]]),
        (MIG, 2, [[MIG[0]], [MIG[1]]]),
    ],
)
def test_each_worker_gets_its_own_while_there_are_enough(devices, workers, shares):
    assert [share(devices, worker, workers) for worker in range(workers)] == shares


def test_a_worker_that_replaces_another_gets_a_share_too():
    assert share(["0", "1", "2", "3"], 2, 2) == ["0", "2"]
