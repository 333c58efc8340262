"""Plans of batched copies, their buffers, and the check of their bytes. Imports numpy."""

from pytest_cudabatch.copies.bound import BoundPlan
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

__all__ = [
    "CANVAS",
    "GUARD_BYTES",
    "MIXED_SIZES",
    "UNIFORM_SIZES",
    "WIDE_SIZES",
    "BoundPlan",
    "Direction",
    "GuardOverrun",
    "Mixture",
    "PageGeometry",
    "PagePlan",
    "Place",
    "Plan",
    "Problem",
    "WrongBytes",
    "copy_one_by_one",
    "make_packing_plan",
    "make_page_plan",
    "make_plan",
]
