"""Plans of batched copies, their buffers, and the check of their bytes. Imports numpy."""

from pytest_cudabatch.copies.bound import BoundPlan
from pytest_cudabatch.copies.filled_plans import FilledPlans
from pytest_cudabatch.copies.layouts import make_packing_plan
from pytest_cudabatch.copies.oracle import copy_one_by_one
from pytest_cudabatch.copies.pages import PageGeometry, PagePlan, make_page_plan
from pytest_cudabatch.copies.pattern import CANVAS
from pytest_cudabatch.copies.plan import (
    GUARD_BYTES,
    MIXED_SIZES,
    UNIFORM_SIZES,
    WIDE_SIZES,
    Direction,
    Mixture,
    Place,
    Plan,
    make_plan,
)
from pytest_cudabatch.copies.problems import GuardOverrun, Problem, WrongBytes
from pytest_cudabatch.copies.replays import Replay, ReplayedBatch, plan_of
from pytest_cudabatch.copies.traces import MemoryKind, Trace, TracedBatch

__all__ = [
    "CANVAS",
    "GUARD_BYTES",
    "MIXED_SIZES",
    "UNIFORM_SIZES",
    "WIDE_SIZES",
    "BoundPlan",
    "Direction",
    "FilledPlans",
    "GuardOverrun",
    "MemoryKind",
    "Mixture",
    "PageGeometry",
    "PagePlan",
    "Place",
    "Plan",
    "Problem",
    "Replay",
    "ReplayedBatch",
    "Trace",
    "TracedBatch",
    "WrongBytes",
    "copy_one_by_one",
    "make_packing_plan",
    "make_page_plan",
    "make_plan",
    "plan_of",
]
