"""A service started by its client, for desks and notebooks: it lives as long as the process that wanted it."""

import atexit
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

import httpx

from assay.errors import ServiceFailure

_STOP_SECONDS = 40.0


class LocalServer:
    """A running service on a free port of this machine, with a key that only its starter knows."""

    def __init__(self, settings: dict[str, str], start_seconds: float) -> None:
        """Start the service and wait until its workers are warm.

        Raises:
            ServiceFailure: it is not installed here, or did not become ready; the message holds what it said.
        """
        self.api_key = secrets.token_urlsafe(32)
        self._starter = os.getpid()
        self._said: deque[str] = deque(maxlen=20)
        self._address = ""
        self._process = subprocess.Popen(
            # The supervisor ends the service when the pipe to its standard input closes, however this process ends.
            [sys.executable, "-m", "assay.supervisor", _program(), "serve", "--port", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is the starter's to act upon
            env={**os.environ, **settings, "ASSAY_HOST": "127.0.0.1", "ASSAY_API_KEYS": self.api_key},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        atexit.register(self.stop)
        try:
            self._wait(time.monotonic() + start_seconds)
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The service's address."""
        return self._address

    def stop(self) -> None:
        """Stop the service and wait for its end; does nothing in a fork of the process that started it."""
        if os.getpid() != self._starter:
            return
        atexit.unregister(self.stop)
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(1.0)
        if not self._reader.is_alive():
            self._process.stderr.close()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)
            found = re.search(r"listening on (http://\S+)", line)
            if found:
                self._address = found[1]

    def _wait(self, until: float) -> None:
        while time.monotonic() < until:
            if self._process.poll() is not None:
                self._reader.join(1.0)
                raise ServiceFailure(f"the local service did not start:\n{''.join(self._said)}")
            if self._address and self._is_ready():
                return
            time.sleep(0.05)
        raise ServiceFailure(f"the local service was not ready in time:\n{''.join(self._said)}")

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self._address}/readyz", timeout=5.0).status_code == 200
        except httpx.TransportError:
            return False


def _program() -> str:
    beside = Path(sys.executable).with_name("assay")
    found = str(beside) if beside.exists() else shutil.which("assay")
    if found is None:
        raise ServiceFailure("the program `assay` is not installed here: install the server, or give the url of one")
    return found
