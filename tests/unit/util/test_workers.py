"""Workers end with the process that started them; a lost one is one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from mklopt.util.workers import end_with, ending_with_us, losses_reported
from tests.faults import all_end

PARENT = """
import os, subprocess, sys, time
code = f"from mklopt.util.workers import end_with; end_with({os.getpid()})"
code += "; print('watching', flush=True); import time; time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_soon_after_its_killed_parent(how):
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(how)
    assert all_end({child}, 5.0)


def test_a_worker_whose_parent_is_gone_already_ends():
    code = "from mklopt.util.workers import end_with; end_with(1234567)"
    code += "; import time; time.sleep(60)"
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 1


def test_only_backends_that_start_processes_here_are_told():
    wanted = {"initializer": end_with, "initargs": (os.getpid(),)}
    assert ending_with_us("loky") == ending_with_us("multiprocessing") == wanted
    assert ending_with_us("threading") == ending_with_us("dask") == {}


def test_a_killed_worker_is_one_sentence():
    with (
        pytest.raises(ChildProcessError, match="a worker process was killed"),
        losses_reported(),
        ProcessPoolExecutor(1) as pool,
    ):
        pool.submit(os.kill, os.getpid(), 0).result()
        pool.submit(os._exit, 3).result()
