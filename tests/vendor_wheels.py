"""Makes what the tests of fetching and discovery need: small libraries and wheels, as a vendor would."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SIMULATED_NOTE = r"""
__asm__(".pushsection .note.cudabatch, \"a\", %note\n"
        ".balign 4\n .long 10, 9, 1\n .asciz \"cudabatch\"\n .balign 4\n .ascii \"simulated\"\n .balign 4\n"
        ".popsection");
"""


def compile_library(path: Path, source: str, *options: str, soname: str | None = None) -> Path:
    """Compile C ``source`` into a shared library at ``path`` and return the path."""
    name = [f"-Wl,-soname,{soname}"] if soname else []
    command = ["cc", "-shared", "-fPIC", "-O1", *name, *options, "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def libcudart(
    path: Path, version: int, *, batch: bool = True, extra: str = "", options: Sequence[str] = ()
) -> Path:
    """Compile a library that says what a libcudart of ``version`` (12090) says of itself."""
    source = f"int cudaRuntimeGetVersion(int *version) {{ *version = {version}; return 0; }}\n{extra}"
    if batch:
        source += "int cudaMemcpyBatchAsync(void) { return 0; }\n"
    return compile_library(path, source, *options, soname=f"libcudart.so.{version // 1000}")


def make_wheel(
    directory: Path,
    name: str,
    version: str,
    content: Mapping[str, bytes],
    *,
    requires: Sequence[str] = (),
    entry_points: str = "",
    tag: str = "py3-none-any",
    recorded: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a wheel; ``recorded`` replaces contents in RECORD's checksums only, as in a damaged wheel."""
    information = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {text}\n" for text in requires)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}"
    format_ = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
    files = {
        **content,
        f"{information}/METADATA": metadata.encode(),
        f"{information}/WHEEL": format_.encode(),
    }
    if entry_points:
        files[f"{information}/entry_points.txt"] = entry_points.encode()
    wheel = directory / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
        rows = [
            f"{path},sha256={_digest(data)},{len(data)}"
            for path, data in {**files, **(recorded or {})}.items()
        ]
        archive.writestr(f"{information}/RECORD", "\n".join([*rows, f"{information}/RECORD,,", ""]))
    return wheel


def runtime_wheel(directory: Path, release: str, library: bytes, *, recorded: bytes | None = None) -> Path:
    """Write a wheel of the CUDA runtime with ``library`` where the vendor puts it."""
    major = int(release.partition(".")[0])
    name = "nvidia_cuda_runtime_cu12" if major == 12 else "nvidia_cuda_runtime"
    place = f"nvidia/{'cuda_runtime' if major == 12 else f'cu{major}'}/lib"
    member = f"{place}/libcudart.so.{major}"
    content = {f"{place}/libcudadevrt.a": b"not a library that anybody loads", member: library}
    return make_wheel(directory, name, release, content, recorded={member: recorded} if recorded else None)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
