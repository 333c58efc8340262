"""The file as its supervisor sees it, and the environment of the programs that write into it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer import CopyPath, EvidenceFile, environment

LIBRARY = str(native.library("libcudabatch_interposer.so"))
STATIC_TLS = "glibc.rtld.optional_static_tls"


def test_fresh_slots_hold_no_evidence(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=3) as evidence_file:
        assert evidence_file.slots == 3
        evidence = evidence_file.read(2)
    assert (evidence.recorded, evidence.calls, evidence.path) == (False, (), CopyPath.UNKNOWN)


def test_claim_without_the_library_records_nothing(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence") as created:
        with EvidenceFile.open(tmp_path / "evidence") as opened:
            opened.claim(0)
        assert not created.read(0).recorded


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence"):
        assert (tmp_path / "evidence").stat().st_mode & 0o777 == 0o600


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "evidence"
    path.write_bytes(b"someone else's")
    with pytest.raises(EvidenceError) as caught:
        EvidenceFile.create(path)
    assert str(caught.value) == f"cannot create the evidence file {path}: File exists"
    assert path.read_bytes() == b"someone else's"


@pytest.mark.parametrize("slots", [0, -1, 257])
def test_number_of_slots_is_checked(tmp_path: Path, slots: int) -> None:
    with pytest.raises(EvidenceError) as caught:
        EvidenceFile.create(tmp_path / "evidence", slots=slots)
    assert str(caught.value) == f"an evidence file has 1 to 256 slots, not {slots}"


@pytest.mark.parametrize("slot", [-1, 2])
@pytest.mark.parametrize("method", ["clear", "claim", "read"])
def test_slot_number_is_checked(tmp_path: Path, method: str, slot: int) -> None:
    path = tmp_path / "evidence"
    with EvidenceFile.create(path, slots=2) as evidence_file, pytest.raises(EvidenceError) as caught:
        getattr(evidence_file, method)(slot)
    assert str(caught.value) == f"{path} has the slots 0 to 1, not {slot}"


def test_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing"
    with pytest.raises(EvidenceError) as caught:
        EvidenceFile.open(path)
    assert str(caught.value) == f"cannot open the evidence file {path}: No such file or directory"


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence"
    EvidenceFile.create(path, slots=2).close()
    whole = path.read_bytes()
    cases = {
        whole[:100]: "is no evidence file: it has only 100 bytes",
        bytes(8) + whole[8:]: "is no evidence file",
        whole[:8] + b"\x63" + whole[9:]: "was made by another version of pytest-cudabatch",
        whole[:-4096]: f"has {len(whole) - 4096} bytes, which does not fit 2 slots",
    }
    for content, problem in cases.items():
        path.write_bytes(content)
        with pytest.raises(EvidenceError) as caught:
            EvidenceFile.open(path)
        assert str(caught.value).startswith(f"{path} {problem}")


def test_environment_of_a_new_program(tmp_path: Path) -> None:
    assert environment(tmp_path / "evidence", base={}) == {
        "LD_AUDIT": LIBRARY,
        "CUDABATCH_EVIDENCE": str(tmp_path / "evidence"),
        "GLIBC_TUNABLES": f"{STATIC_TLS}=16384",
    }


def test_relative_path_is_made_absolute_for_programs_that_start_elsewhere() -> None:
    assert environment(Path("evidence"), base={})["CUDABATCH_EVIDENCE"] == str(Path.cwd() / "evidence")


@pytest.mark.parametrize(
    ("audit", "merged"),
    [
        ("", LIBRARY),
        ("/opt/other.so", f"{LIBRARY}:/opt/other.so"),
        (f"{LIBRARY}:/opt/other.so", f"{LIBRARY}:/opt/other.so"),
        (f"/opt/one.so:{LIBRARY}:/opt/other.so", f"{LIBRARY}:/opt/one.so:/opt/other.so"),
    ],
)
def test_callers_audit_libraries_are_kept(tmp_path: Path, audit: str, merged: str) -> None:
    assert environment(tmp_path, base={"LD_AUDIT": audit})["LD_AUDIT"] == merged


@pytest.mark.parametrize(
    ("tunables", "merged"),
    [
        ("glibc.malloc.check=1", f"glibc.malloc.check=1:{STATIC_TLS}=16384"),
        (f"{STATIC_TLS}=512", f"{STATIC_TLS}=16384"),
        (f"{STATIC_TLS}=65536", f"{STATIC_TLS}=65536"),
        (f"{STATIC_TLS}=65536:glibc.malloc.check=1", f"{STATIC_TLS}=65536:glibc.malloc.check=1"),
    ],
)
def test_callers_tunables_are_kept(tmp_path: Path, tunables: str, merged: str) -> None:
    assert environment(tmp_path, base={"GLIBC_TUNABLES": tunables})["GLIBC_TUNABLES"] == merged


def test_claim_takes_a_process_out_of_its_other_slots(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=3) as evidence_file:
        evidence_file.claim(0, os.getpid())
        evidence_file.claim(1, os.getpid() + 1)
        evidence_file.claim(2, os.getpid())
        owners = [evidence_file.owner(slot) for slot in range(3)]
    assert owners == [None, os.getpid() + 1, os.getpid()]
