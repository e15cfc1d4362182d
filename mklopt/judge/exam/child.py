"""The process that runs a candidate: how it starts, how it ended, how it is killed.

    forked     from a thread, so that nothing but trial.py is on its stack; Linux
    spawned    a new Python that connects to the judge; Windows and macOS, where a fork
               is not there, or not safe once numerical libraries run

Both run `begin` of trial.py, and are killed with what they started (on Windows: alone).
"""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import cloudpickle

from . import trial

CONNECT = 60  # seconds that a new Python may take until it connects
START = """
import pickle, socket, sys
port, word, path, source = pickle.load(sys.stdin.buffer)
line = socket.create_connection(("127.0.0.1", port))
line.sendall(word)
sys.path[:] = path
space = {"__name__": "__main__"}
exec(compile(source, "<string>", "exec"), space)
space["begin"](line, *pickle.load(sys.stdin.buffer))
"""


def start_method() -> str:
    """How processes start on this system: "fork" or "spawn"."""
    safe = hasattr(os, "fork") and sys.platform != "darwin"
    return "fork" if safe else "spawn"


def started(solver: Any, pairs: Any, limit: float) -> Forked | Spawned:
    """A process that answers questions about these problems on its `line`."""
    kind = Forked if start_method() == "fork" else Spawned
    return kind(solver, pairs, limit)


class Forked:
    """A process with all that this one has in memory."""

    def __init__(self, *work: Any) -> None:
        self.line, other = socket.socketpair()
        self.pid = _forked(other, self.line, *work)
        other.close()

    def exit_code(self) -> int | None:
        """The code that it ended with; None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        _kill_group(self.pid)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """End it, and all that it started."""
        if self.pid:
            _kill_group(self.pid)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        self.line.close()


class Spawned:
    """A new Python, which is sent the solver and the problems.

    Raises
    ------
    TypeError
        If the solver cannot be sent.
    ConnectionError
        If the process ends before it connects.
    """

    def __init__(self, *work: Any) -> None:
        try:
            content = cloudpickle.dumps(work)
        except Exception as error:  # pickling runs code of the user
            raise TypeError(
                "a solver is judged in a process of its own, and this one cannot be "
                f"sent there ({error}); put it into a file and name it: 'module:name'"
            ) from None
        with socket.create_server(("127.0.0.1", 0)) as server:
            word = secrets.token_bytes(32)
            self.process = subprocess.Popen(
                [sys.executable, "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # so that it is killed with what it starts
            )
            port, source = server.getsockname()[1], _source()
            first = pickle.dumps((port, word, sys.path, source))
            threading.Thread(target=self._send, args=(first + content,)).start()
            self.line = self._connected(server, word)

    def _send(self, content: bytes) -> None:
        with suppress(OSError):  # it may end without reading
            stream: Any = self.process.stdin
            with stream:
                stream.write(content)

    def _connected(self, server: socket.socket, word: bytes) -> socket.socket:
        """The line to the process: whoever connects must know the word."""
        server.settimeout(1.0)
        for _ in range(CONNECT):
            if self.process.poll() is not None:
                break
            with suppress(TimeoutError, ConnectionError):
                line, _ = server.accept()
                line.settimeout(5.0)
                if line.recv(len(word), socket.MSG_WAITALL) == word:
                    return line
                line.close()
        self._end()
        raise ConnectionError("its process did not begin")

    def exit_code(self) -> int | None:
        """The code that it ended with; None while it runs."""
        return self.process.poll()

    def kill(self) -> None:
        """End it, and all that it started."""
        self._end()
        self.line.close()

    def _end(self) -> None:
        if hasattr(os, "killpg"):
            _kill_group(self.process.pid)
        self.process.kill()
        self.process.wait()


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@cache
def _source() -> str:
    return Path(trial.__file__).read_text("utf-8")


@cache
def _neutral() -> dict[str, Any]:
    """What trial.py defines, under names of files and modules that tell nothing."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(_source(), "<string>", "exec"), space)
    return space


def _forked(*work: Any) -> int:
    """The number of a new process that does this work, with an empty stack."""
    pids: list[int] = []
    target = partial(_neutral()["fork"], pids, *work)
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Threads of numerical libraries survive a fork: they are idle here.
        warnings.simplefilter("ignore", DeprecationWarning)
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    return pids[0]
