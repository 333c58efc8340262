"""cudabatch_dispatch.h, and what the specimens do right, on fakes that answer as no driver does on demand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .fakes import STREAM, Fakes, call, needs_compiler

HEADER = Path(__file__).parents[2] / "pytest_cudabatch" / "native" / "dispatch"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")

needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is what compiles the header as C++")


def compiles(tmp_path: Path, compiler: str, standard: str, source: str) -> None:
    file = tmp_path / ("use.c" if compiler == "gcc" else "use.cpp")
    file.write_text(source)
    command = [compiler, standard, *WARNINGS, f"-I{HEADER}", "-c", str(file), "-o", str(tmp_path / "use.o")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@needs_compiler
@pytest.mark.parametrize("standard", ["-std=c11", "-std=gnu17"])
@pytest.mark.parametrize("before", ["", "#include <stdio.h>\n"], ids=["alone", "after stdio.h"])
def test_the_header_is_clean_c(tmp_path: Path, standard: str, before: str) -> None:
    compiles(tmp_path, "gcc", standard, before + '#include "cudabatch_dispatch.h"\n')


@needs_cxx
def test_the_header_is_clean_cxx(tmp_path: Path) -> None:
    use = "int use(void **d, const void **s, size_t *n) { return cudabatch_enqueue(d, s, n, 1, nullptr); }\n"
    compiles(tmp_path, "g++", "-std=c++17", f'#include "cudabatch_dispatch.h"\n{use}')


@needs_compiler
class TestRoutes:
    """Whom the reference asks, and what it takes from whom."""

    @pytest.mark.parametrize("runtime", ["runtime12", "runtime13"])
    def test_the_driver_is_asked_first_and_by_version(self, fakes: Fakes, runtime: str) -> None:
        outcome = fakes.run(runtime, "driver")
        assert outcome.results == [(0, True)]
        assert (outcome.counts("driver"), outcome.counts(runtime)) == ((1, 0), (0, 0))
        assert outcome.seen["driver"]["fake_lookup_version"] == 12080
        assert outcome.seen["driver"]["fake_stream"] == STREAM

    @pytest.mark.parametrize("lookup", [1, 2, 3], ids=["error", "success and NULL", "bad status"])
    @pytest.mark.parametrize("runtime", ["runtime12", "runtime13"])
    def test_a_failed_look_up_leads_to_the_runtime(self, fakes: Fakes, runtime: str, lookup: int) -> None:
        outcome = fakes.run(runtime, "driver", driver={"fake_lookup": lookup})
        assert outcome.results == [(0, True)]
        assert (outcome.counts("driver"), outcome.counts(runtime)) == ((0, 0), (1, 0))
        assert outcome.seen[runtime]["fake_stream"] == STREAM

    @pytest.mark.parametrize("order", [("runtime12", "runtime13"), ("runtime13", "runtime12")])
    def test_of_two_runtimes_function_and_version_are_of_one(
        self, fakes: Fakes, order: tuple[str, str]
    ) -> None:
        outcome = fakes.run(*order)
        assert outcome.results == [(0, True)]
        assert (outcome.counts("runtime12"), outcome.counts("runtime13")) == ((0, 0), (1, 0))
        assert outcome.seen["runtime13"]["fake_stream"] == STREAM

    @pytest.mark.parametrize(
        "lie",
        [
            ("runtime12", {"fake_version": 13000}),
            ("runtime13", {"fake_version": 12090}),
            ("runtime13", {"fake_version": 14000}),
            ("runtime12", {"fake_version_code": 35}),
        ],
        ids=["12 says 13.0", "13 says 12.9", "13 says 14.0", "12 does not say"],
    )
    def test_a_runtime_of_unclear_version_is_not_called(
        self, fakes: Fakes, lie: tuple[str, dict[str, int]]
    ) -> None:
        runtime, variables = lie
        outcome = fakes.run(runtime, **{runtime: variables})
        assert outcome.results == [(0, True)]
        assert outcome.counts(runtime) == (0, 3)
        assert outcome.seen[runtime]["fake_last_error"] == 0

    def test_without_cuda_it_says_so_and_looks_again(self, fakes: Fakes) -> None:
        later = call() | {"load": {"driver": fakes.paths["driver"]}}
        assert fakes.run(calls=[call(), later]).results == [(3, False), (0, True)]

    def test_threads_that_come_first_together_all_copy_right(self, fakes: Fakes) -> None:
        outcome = fakes.run("runtime12", "driver", threads=16)
        assert outcome.results == [(0, True)] * 16
        assert outcome.counts("runtime12") == (0, 0)


@needs_compiler
class TestContext:
    """The driver rejects a thread without a context, where the runtime would give it one."""

    @pytest.mark.parametrize(("code", "counts"), [(0, (1, 0)), (801, (1, 3))], ids=["batch", "fallback"])
    def test_a_new_thread_borrows_the_context_of_the_stream(
        self, fakes: Fakes, code: int, counts: tuple[int, int]
    ) -> None:
        outcome = fakes.run("driver", driver={"fake_needs_context": 1, "fake_batch_code": code})
        assert outcome.results == [(0, True)]
        assert outcome.counts("driver") == counts
        seen = outcome.seen["driver"]
        assert (seen["fake_contexts_borrowed"], seen["fake_contexts_returned"]) == (1, 1)

    def test_it_is_given_back_after_an_error_too(self, fakes: Fakes) -> None:
        outcome = fakes.run("driver", driver={"fake_needs_context": 1, "fake_batch_code": 1})
        assert outcome.results == [(1, False)]
        seen = outcome.seen["driver"]
        assert (seen["fake_contexts_borrowed"], seen["fake_contexts_returned"]) == (1, 1)

    @pytest.mark.parametrize(
        "function", ["fake_get_context_code", "fake_stream_context_code", "fake_borrow_context_code"]
    )
    def test_an_error_of_borrowing_is_returned(self, fakes: Fakes, function: str) -> None:
        outcome = fakes.run("runtime12", "driver", driver={"fake_needs_context": 1, function: 4})
        assert outcome.results == [(4, False)]
        assert (outcome.counts("driver"), outcome.counts("runtime12")) == ((0, 0), (0, 0))

    @pytest.mark.parametrize(("batch", "returned"), [(0, (4, True)), (1, (1, False))])
    def test_an_error_of_giving_back_is_returned_unless_there_is_one_already(
        self, fakes: Fakes, batch: int, returned: tuple[int, bool]
    ) -> None:
        wanted = {"fake_needs_context": 1, "fake_return_context_code": 4, "fake_batch_code": batch}
        assert fakes.run("driver", driver=wanted).results == [returned]

    @pytest.mark.parametrize("stream", [0, 1, 2])
    def test_a_default_stream_has_none_to_lend(self, fakes: Fakes, stream: int) -> None:
        outcome = fakes.run("driver", calls=[call(stream=stream)], driver={"fake_needs_context": 1})
        assert outcome.results == [(201, False)]
        assert outcome.seen["driver"]["fake_contexts_borrowed"] == 0

    def test_single_copies_go_to_the_runtime_which_gives_a_context(self, fakes: Fakes) -> None:
        outcome = fakes.run("runtime12", "driver", calls=[call(stream=0)], driver={"fake_needs_context": 1})
        assert outcome.results == [(0, True)]
        assert (outcome.counts("driver"), outcome.counts("runtime12")) == ((0, 0), (0, 3))


@needs_compiler
class TestArguments:
    """What the batch call rejects, and how much it gets at once."""

    @pytest.mark.parametrize(
        ("count", "calls", "largest"), [(1, 1, 1), (1024, 1, 1024), (1025, 2, 1024), (4097, 5, 1024)]
    )
    def test_a_call_gets_at_most_1024_copies(
        self, fakes: Fakes, count: int, calls: int, largest: int
    ) -> None:
        outcome = fakes.run("driver", calls=[call([3] * count)])
        assert outcome.results == [(0, True)]
        assert (outcome.counts("driver"), outcome.seen["driver"]["fake_largest_batch"]) == (
            (calls, 0),
            largest,
        )

    @pytest.mark.parametrize("implementation", ["reference", "specimen-dlsym-always-9"])
    @pytest.mark.parametrize(
        ("sizes", "calls"),
        [([0, 5, 0, 9], 1), ([5, 0], 1), ([0], 0), ([0] * 1025, 0), ([], 0), ([7] * 1200 + [0], None)],
    )
    def test_empty_copies_are_left_out(
        self, fakes: Fakes, implementation: str, sizes: list[int], calls: int | None
    ) -> None:
        outcome = fakes.run("runtime12", implementation=implementation, calls=[call(sizes)])
        expected = calls if calls is not None else {"reference": 2}.get(implementation, 1)
        assert outcome.results == [(0, True)]
        assert outcome.counts("runtime12") == (expected, 0)

    @pytest.mark.parametrize("implementation", ["reference", "specimen-dlsym-always-8"])
    @pytest.mark.parametrize(("stream", "counts"), [(0, (0, 3)), (1, (0, 3)), (2, (1, 0))])
    def test_the_legacy_stream_is_copied_one_by_one(
        self, fakes: Fakes, implementation: str, stream: int, counts: tuple[int, int]
    ) -> None:
        outcome = fakes.run("runtime13", implementation=implementation, calls=[call(stream=stream)])
        assert outcome.results == [(0, True)]
        assert (outcome.counts("runtime13"), outcome.seen["runtime13"]["fake_stream"]) == (counts, stream)


IMPLEMENTATIONS = [
    ("reference", "driver"),
    ("reference", "runtime12"),
    ("reference", "runtime13"),
    ("specimen-dlsym-always-9", "runtime12"),
    ("specimen-dlsym-always-8", "runtime13"),
]


@needs_compiler
@pytest.mark.parametrize(("implementation", "owner"), IMPLEMENTATIONS)
class TestErrors:
    """Errors of the batch call and of the fallback, by the reference on each route and by specimens."""

    @pytest.mark.parametrize("code", [34, 35, 36, 801])
    def test_unavailable_is_copied_one_by_one(
        self, fakes: Fakes, implementation: str, owner: str, code: int
    ) -> None:
        outcome = fakes.run(owner, implementation=implementation, **{owner: {"fake_batch_code": code}})
        assert outcome.results == [(0, True)]
        assert (outcome.counts(owner), outcome.seen[owner]["fake_last_error"]) == ((1, 3), 0)

    @pytest.mark.parametrize("code", [1, 201, 700, 719, 900])
    def test_any_other_error_is_returned(
        self, fakes: Fakes, implementation: str, owner: str, code: int
    ) -> None:
        outcome = fakes.run(owner, implementation=implementation, **{owner: {"fake_batch_code": code}})
        assert outcome.results == [(code, False)]
        assert (outcome.counts(owner), outcome.seen[owner]["fake_last_error"]) == ((1, 0), 0)

    def test_an_error_of_the_fallback_is_returned(
        self, fakes: Fakes, implementation: str, owner: str
    ) -> None:
        wanted = {"fake_batch_code": 801, "fake_copy_code": 719, "fake_copy_code_at": 1}
        outcome = fakes.run(owner, implementation=implementation, **{owner: wanted})
        assert outcome.results == [(719, False)]
        assert (outcome.counts(owner), outcome.seen[owner]["fake_last_error"]) == ((1, 2), 0)


@needs_compiler
class TestMemory:
    """What one call's outcome means for the next, and for what lies outside."""

    @pytest.mark.parametrize(("code", "counts"), [(36, (1, 6)), (801, (2, 6))])
    def test_only_an_old_driver_is_remembered(self, fakes: Fakes, code: int, counts: tuple[int, int]) -> None:
        outcome = fakes.run("runtime12", calls=[call(), call()], runtime12={"fake_batch_code": code})
        assert outcome.results == [(0, True), (0, True)]
        assert outcome.counts("runtime12") == counts

    def test_a_fallback_midway_copies_only_the_rest(self, fakes: Fakes) -> None:
        wanted = {"fake_batch_code": 801, "fake_batch_code_at": 1}
        outcome = fakes.run("driver", calls=[call([3] * 3000)], driver=wanted)
        assert outcome.results == [(0, True)]
        assert outcome.counts("driver") == (2, 3000 - 1024)

    @pytest.mark.parametrize("code", [0, 1, 801])
    def test_somebody_elses_last_error_stays(self, fakes: Fakes, code: int) -> None:
        """The driver's answers never reach the runtime's last error, so there is none of ours to clear."""
        outcome = fakes.run(
            "runtime12", "driver", driver={"fake_batch_code": code}, runtime12={"fake_last_error": 98}
        )
        assert outcome.seen["runtime12"]["fake_last_error"] == 98
