# SPDX-License-Identifier: Apache-2.0
"""Our OpenBLAS has the kernels of the CPU's features; the user's setting and NumPy's own OpenBLAS stay as they are."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from shardwise import _core
from shardwise.process import blas

SKYLAKEX = "fpu avx2 fma avx512f avx512cd avx512dq avx512bw avx512vl"


def run(script: str, **environment: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"} | environment
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


NAME = "import shardwise; print(shardwise._core.runtime.blas_core_name())"
# The extension loads while /proc/cpuinfo has other flags.
OTHER_FLAGS = """
    import builtins, io
    real = open
    def other(path, *args, **kwargs):
        if path == "/proc/cpuinfo":
            return io.StringIO("processor : 0\\nflags : {flags}\\n")
        return real(path, *args, **kwargs)
    builtins.open = other
    import shardwise
    print(shardwise._core.runtime.blas_core_name())
"""
has_avx512 = pytest.mark.skipif(blas.coretype_for(blas.cpu_flags()) is None, reason="a CPU with AVX-512 only")


@pytest.mark.parametrize(
    ("flags", "coretype"),
    [
        (SKYLAKEX, "SkylakeX"),
        (f"{SKYLAKEX} avx512_bf16", "Cooperlake"),
        ("fpu avx2 fma", None),
        ("fpu avx2 fma avx512f avx512cd", None),  # Xeon Phi
        (SKYLAKEX.replace(" avx512vl", ""), None),
        ("avx512_bf16", None),
        ("", None),
    ],
)
def test_coretype_follows_from_the_flags(flags: str, coretype: str | None) -> None:
    assert blas.coretype_for(flags.split()) == coretype


def test_flags_are_those_of_cpuid_that_the_system_enabled() -> None:
    assert (blas.coretype_for(blas.cpu_flags()) is not None) == _core.runtime.cpu_has_avx512()


def test_flags_of_a_file_that_is_none(tmp_path: Path) -> None:
    assert blas.cpu_flags(str(tmp_path / "none")) == []
    (tmp_path / "cpuinfo").write_text("processor : 0\nBogoMIPS : 108.00\n")
    assert blas.cpu_flags(str(tmp_path / "cpuinfo")) == []


def test_kernels_of_this_cpu() -> None:
    expected = blas.coretype_for(blas.cpu_flags())
    assert expected is None or run(NAME) == expected


# OpenBLAS takes other kernels where the CPU lacks bfloat16.
has_bfloat16 = pytest.mark.skipif("avx512_bf16" not in blas.cpu_flags(), reason="a CPU with bfloat16 only")


@has_avx512
@pytest.mark.parametrize(
    ("flags", "coretype"),
    [(SKYLAKEX, "SkylakeX"), pytest.param(f"{SKYLAKEX} avx512_bf16", "Cooperlake", marks=has_bfloat16)],
)
def test_kernels_are_chosen_by_the_flags(flags: str, coretype: str) -> None:
    assert run(OTHER_FLAGS.format(flags=flags)) == coretype


def test_without_avx512_openblas_chooses() -> None:
    own = run("import ctypes; b = ctypes.CDLL('libopenblas.so.0'); b.openblas_get_corename.restype = ctypes.c_char_p;"
              "print(b.openblas_get_corename().decode())")  # fmt: skip
    assert run(OTHER_FLAGS.format(flags="fpu avx2 fma")) == own


@pytest.mark.parametrize("coretype", ["Haswell", "Nehalem"])
def test_the_users_setting_wins(coretype: str) -> None:
    assert run(NAME, OPENBLAS_CORETYPE=coretype) == coretype


def test_an_openblas_that_is_loaded_already_keeps_its_kernels() -> None:
    script = """
        import ctypes, os
        os.environ["OPENBLAS_CORETYPE"] = "Nehalem"
        blas = ctypes.CDLL("libopenblas.so.0")
        del os.environ["OPENBLAS_CORETYPE"]
        import shardwise
        blas.openblas_get_corename.restype = ctypes.c_char_p
        print(blas.openblas_get_corename().decode())
    """
    assert run(script) == "Nehalem"


@pytest.mark.parametrize("value", [None, "", "Haswell"])
def test_the_environment_is_unchanged_after_the_import(value: str | None) -> None:
    script = """
        import ctypes, os, subprocess
        before = dict(os.environ)
        import shardwise
        assert dict(os.environ) == before
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_char_p
        print(getenv(b"OPENBLAS_CORETYPE"))
    """
    environment = {} if value is None else {"OPENBLAS_CORETYPE": value}
    assert run(script, **environment) == str(None if value is None else value.encode())


@has_avx512
def test_numpy_keeps_its_own_kernels() -> None:
    script = """
        import ctypes, glob, os
        {imports}
        import numpy
        libraries = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs", "*openblas*")
        (library,) = glob.glob(libraries) or [None]
        if library is not None:
            name = ctypes.CDLL(library).scipy_openblas_get_corename64_
            name.restype = ctypes.c_char_p
            print(name().decode())
    """
    alone = run(script.format(imports=""))
    assert alone, "NumPy's wheels bring an OpenBLAS; without it this test compares nothing"
    flags = OTHER_FLAGS.replace("print", "str").format(flags=SKYLAKEX)
    assert run(textwrap.dedent(flags) + textwrap.dedent(script.format(imports=""))) == alone
    assert run(script.format(imports="import shardwise")) == alone
