"""The finding codes: a leaf, so that tests, verdicts and reports share one list."""

from __future__ import annotations

import enum

__all__ = ["Code"]


class Code(enum.Enum):
    """Every finding code of this version; the value is the name used in reports."""

    WRONG_ABI = "wrong-abi"
    SPLIT_OWNER = "split-owner"
    LOOKUP_UNCHECKED = "lookup-unchecked"
    NO_DRIVER_GUARD = "no-driver-guard"
    SILENT_FALLBACK = "silent-fallback"
    UNCHECKED_RETURN = "unchecked-return"
    MASKED_ERROR = "masked-error"
    ERROR_LEFT_BEHIND = "error-left-behind"
    LEGACY_STREAM = "legacy-stream"
    CAPTURE_LOST = "capture-lost"
    WRONG_CONTEXT = "wrong-context"
    SOURCE_FREED_EARLY = "source-freed-early"
    MISSING_ORDER = "missing-order"
    EARLY_RETURN = "early-return"
    BAD_ADDRESS = "bad-address"
    STRADDLES_REGISTRATION = "straddles-registration"
    ZERO_SIZE = "zero-size"
    ATTRIBUTES = "attributes"
    OVERREAD = "overread"
    GUARD_OVERRUN = "guard-overrun"
    WRONG_BYTES = "wrong-bytes"
    DRIVER_FAULT = "driver-fault"
    CRASH = "crash"
    HANG = "hang"
    SILENT_EXIT = "silent-exit"
    IMPORT_ERROR = "import-error"
    MISSING_SYMBOL = "missing-symbol"
    LEAKED_STATE = "leaked-state"
    DRIVER_TOO_OLD = "driver-too-old"
    NO_GPU = "no-gpu"
    UNSEEN_BINDING = "unseen-binding"
    NO_EVIDENCE = "no-evidence"
