from __future__ import annotations

from pathlib import Path

import pytest

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings import load_matrix
from pytest_cudabatch.pairings.matrix import KnownRuntime

RUNTIME = """
[[runtime]]
version = "13.6"
abi = "v13000"
exports_batch = true
basis = "assumed"
source = "ours"
"""


def problems_of(directory: Path) -> list[str]:
    """Return what is wrong with the directory's files, without the directory."""
    with pytest.raises(UsageError) as refusal:
        load_matrix(directory)
    return [problem.replace(f"{directory}/", "") for problem in refusal.value.problems]


def write(directory: Path, name: str, text: str, *, schema: str = "schema = 1") -> None:
    (directory / name).write_text(f"{schema}\n{text}")


def test_versions_of_the_packaged_matrix() -> None:
    matrix = load_matrix()
    assert [str(runtime.version) for runtime in matrix.runtimes] == [
        "12.6", "12.8", "12.9", "13.0", "13.1", "13.2", "13.3", "13.4", "13.5",
    ]  # fmt: skip
    assert {str(driver.version): driver.branch for driver in matrix.drivers} == {
        "12.4": 550, "12.8": 570, "12.9": 575, "13.0": 580, "13.2": 595, "13.5": None,
    }  # fmt: skip


def test_a_project_adds_and_replaces(tmp_path: Path) -> None:
    write(tmp_path, "runtimes.toml", RUNTIME + RUNTIME.replace("13.6", "12.6").replace("13000", "12080"))
    write(
        tmp_path,
        "pairings.toml",
        '[[basis]]\nruntime = ">=13.6"\ndriver = ""\nbasis = "assumed"\nsource = "x"\n',
    )
    assert problems_of(tmp_path) == [
        "pairings.toml: basis 1: driver: a version specifier is missing here, such as >=12.8"
    ]
    write(
        tmp_path,
        "pairings.toml",
        '[[basis]]\nruntime = ">=13.6"\ndriver = ">=1"\nbasis = "assumed"\nsource = "x"\n',
    )
    matrix = load_matrix(tmp_path)
    by_version = {str(runtime.version): runtime for runtime in matrix.runtimes}
    assert list(by_version) == [
        "12.6",
        "12.8",
        "12.9",
        "13.0",
        "13.1",
        "13.2",
        "13.3",
        "13.4",
        "13.5",
        "13.6",
    ]
    assert by_version["12.6"] == KnownRuntime(CudaVersion(12, 6), BatchAbi.V12080, True, "assumed", "ours")
    assert matrix.basis(CudaVersion(13, 6), CudaVersion(13, 0)) == "assumed"
    assert matrix.basis(CudaVersion(13, 4), CudaVersion(13, 0)) == "header"
    assert matrix.basis(CudaVersion(13, 6), CudaVersion(12, 9)) is None  # a basis makes nothing legal
    assert matrix.drivers == load_matrix().drivers


def test_every_problem_of_every_file_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        "runtimes.toml",
        """
[[runtime]]
version = "13"
abi = "v14000"
exports_batch = 1
source = "x"
notes = "unknown"
[[runtime]]
version = "13.0.96"
abi = "v13000"
exports_batch = true
basis = "certain"
source = "x"
[[runtime]]
version = "12.9"
abi = "v13000"
exports_batch = true
basis = "header"
source = "x"
""",
    )
    write(
        tmp_path,
        "drivers.toml",
        '[[driver]]\nversion = "12.9"\nexports = []\nbasis = "header"\nsource = "x"\n',
    )
    write(
        tmp_path,
        "pairings.toml",
        '[[legal]]\nruntime = ">=13,=<14"\nbasis = "observed"\nsource = "x"\n'
        '[[basis]]\nruntime = ">=13"\ndriver = ">=13"\nbasis = "observed"\nsource = "x"\nfile = "none.json"\n'
        '[[basis]]\nruntime = ">=13"\ndriver = ">=13"\nbasis = "observed"\nsource = "x"\n',
    )
    assert problems_of(tmp_path) == [
        "runtimes.toml: runtime 1: version: '13' is not a CUDA version; write it like 12.9 or 12.9.79",
        "runtimes.toml: runtime 1: abi: must be one of v12080, v13000, not 'v14000'",
        "runtimes.toml: runtime 1: exports_batch: must be true or false, not 1",
        "runtimes.toml: runtime 1: basis: is missing",
        "runtimes.toml: runtime 1: notes: unknown key",
        "runtimes.toml: runtime 2: version: must be major.minor, not '13.0.96'",
        "runtimes.toml: runtime 2: basis: must be one of observed, header, assumed, not 'certain'",
        "runtimes.toml: runtime 3: abi: a runtime 12.9 has v12080",
        "drivers.toml: driver 1: exports: a driver 12.9 exports ['cuMemcpyBatchAsync']",
        "pairings.toml: legal 1: runtime: '=<14' is not a version specifier such as >=12.8",
        "pairings.toml: legal 1: driver: is missing",
        "pairings.toml: basis 2: file: goes with basis observed, and only it",
        "pairings.toml: file: there is no none.json beside it",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"schema = 1\nruntime = [\n", "runtimes.toml: Invalid value (at end of document)"),
        (b"", "runtimes.toml: schema: must be 1, the only one that this version reads"),
        (b"schema = 2\n", "runtimes.toml: schema: must be 1, the only one that this version reads"),
        (b"schema = 1\nruntime = 3\n", "runtimes.toml: runtime: must be an array of tables, [[runtime]]"),
        (b"schema = 1\ndriver = []\n", "runtimes.toml: driver: unknown key"),
        (
            b"schema = 1\n# \xff\n",
            "runtimes.toml: 'utf-8' codec can't decode byte 0xff in position 13: invalid start byte",
        ),
        (
            (f"schema = 1\n{RUNTIME}{RUNTIME}").encode(),
            "runtimes.toml: runtime: version 13.6 is there 2 times",
        ),
    ],
)
def test_a_file_that_is_no_matrix_file(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "runtimes.toml").write_bytes(content)
    assert problems_of(tmp_path) == [problem]


def test_a_missing_schema_hides_no_other_problem(tmp_path: Path) -> None:
    write(tmp_path, "runtimes.toml", RUNTIME.replace("assumed", "certain") + "[[driver]]\n", schema="")
    assert problems_of(tmp_path) == [
        "runtimes.toml: schema: must be 1, the only one that this version reads",
        "runtimes.toml: driver: unknown key",
        "runtimes.toml: runtime 1: basis: must be one of observed, header, assumed, not 'certain'",
    ]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "drivers.toml").mkdir()
    assert problems_of(tmp_path) == ["drivers.toml: Is a directory"]


KNOWN_FILES = "runtimes.toml, drivers.toml, pairings.toml, known-issues.toml"


def test_an_unknown_file_is_told_beside_the_other_problems(tmp_path: Path) -> None:
    write(tmp_path, "runtime.toml", RUNTIME)
    write(tmp_path, "drivers.toml", "[[drivers]]\n")
    (tmp_path / "notes.txt").touch()
    assert problems_of(tmp_path) == [
        f"runtime.toml: unknown file; those that are read are {KNOWN_FILES}",
        "drivers.toml: drivers: unknown key",
    ]


def test_a_directory_without_matrix_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        load_matrix(tmp_path)
    assert str(refusal.value) == f"{tmp_path}: none of {KNOWN_FILES} is there, or all are empty"


def test_a_directory_with_known_issues_alone(tmp_path: Path) -> None:
    write(tmp_path, "known-issues.toml", "")
    assert load_matrix(tmp_path) == load_matrix()
