# SPDX-License-Identifier: Apache-2.0
"""The interpreter ends while threads run programs: no crash, no hang, exit code 0."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SETUP = """
import os, sys, threading, time
import numpy as np
import shardwise as sw

mesh = sw.Mesh({"x": 2})
x = np.ones((SIZE, SIZE), np.float32)
f = sw.jit(lambda x: np.tanh(x @ x).sum(axis=0), mesh=mesh, in_shardings=sw.P("x"))
f(x)

def work():
    while True:
        f(x)

def start(count):
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
"""
# Each child ends as its parent does, without the time of another import.
CHILDREN = """
import warnings
warnings.simplefilter("ignore")  # newer versions of Python warn of a fork beside the threads of a pool
for _ in range(3):
    child = os.fork()
    if child == 0:
        break
    assert os.waitpid(child, 0)[1] == 0
"""


def run(script: str, size: int = 8) -> str:
    program = SETUP.replace("SIZE", str(size)) + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.mark.parametrize(("size", "threads"), [(8, 1), (8, 3), (300, 3), (1500, 2)])
def test_daemon_threads_run_programs_while_the_interpreter_ends(size: int, threads: int) -> None:
    assert run(f"{CHILDREN}start({threads}); print('end')", size) == "end\n" * 4


def test_a_daemon_thread_traces_and_compiles_while_the_interpreter_ends() -> None:
    script = """
def work():
    while True:
        sw.jit(lambda x: np.tanh(x @ x), mesh=mesh).lower(x).compile().collectives()
start(2); print("end")
"""
    assert run(CHILDREN + script) == "end\n" * 4


def test_a_thread_in_the_middle_of_a_large_dot() -> None:
    script = """
        work = lambda: f(x)
        start(1); print("end")
    """
    assert run(script, 4000) == "end\n"


def test_the_interpreter_waits_for_a_thread_that_is_no_daemon() -> None:
    script = """
        def work():
            end = time.time() + 0.5
            while time.time() < end:
                f(x)
            print("thread")
        threading.Thread(target=work).start()
        print("main")
    """
    assert run(script, 300) == "main\nthread\n"


def test_atexit_functions_run_programs_beside_a_daemon_thread() -> None:
    script = """
        import atexit
        atexit.register(lambda: print(np.asarray(f(x)).shape))
        start(1)
    """
    assert run(script, 300) == "(300,)\n"


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_a_forked_child_runs_programs_and_ends_beside_a_daemon_thread(end: str) -> None:
    script = f"""
        import warnings
        warnings.simplefilter("ignore")
        expected = np.asarray(f(x))
        start(1)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                assert (np.asarray(f(x)) == expected).all()
                {end}
            assert os.waitpid(child, 0)[1] == 0
        print("end")
    """
    assert run(script, 300) == "end\n"


def test_an_exception_ends_the_interpreter_beside_a_daemon_thread() -> None:
    program = SETUP.replace("SIZE", "300") + "start(2)\nsys.exit(3)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (3, "")
