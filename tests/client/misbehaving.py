"""A server on loopback that goes wrong as told, over real sockets, and counts what it was asked to do."""

import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass
class Asked:
    """One request as it arrived."""

    key: str
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def tasks(self) -> list[dict[str, Any]]:
        tasks: list[dict[str, Any]] = json.loads(self.body)["tasks"]
        return tasks


Fault = Callable[[socket.socket, bytes], None]
"""What is done with a connection in place of sending the right answer, which is given."""


class MisbehavingServer:
    """Answers each request with the next fault, and rightly when none is left.

    The right reward of a task is the number that its completion is. Work is done once a key, as the service does it.
    """

    def __init__(self, *faults: Fault, error_rounds: int = 0, error_kind: str = "worker_lost") -> None:
        self.faults = list(faults)
        self.requests: list[Asked] = []
        self.work: Counter[str] = Counter()
        """How often each completion was graded."""
        self._error_rounds = error_rounds
        self._error_kind = error_kind
        self._answers: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        thread = threading.Thread(target=self._accept)
        thread.start()
        self._threads.append(thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    @property
    def keys(self) -> set[str]:
        return {request.key for request in self.requests}

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        with connection:
            try:
                while (asked := _read(connection)) is not None:
                    with self._lock:
                        self.requests.append(asked)
                        fault = self.faults.pop(0) if self.faults else right
                        answer = self._answer(asked)
                    fault(connection, answer)
                    if fault is not right:
                        return
            except OSError:
                return

    def _answer(self, asked: Asked) -> bytes:
        if asked.key not in self._answers:
            failing = self._error_rounds > 0
            self._error_rounds -= failing
            verdicts = [_verdict(task, self._error_kind if failing else None) for task in asked.tasks]
            self.work.update(task["completion"] for task in asked.tasks)
            self._answers[asked.key] = json.dumps({"verdicts": verdicts}).encode()
        return self._answers[asked.key]


def _verdict(task: dict[str, Any], error: str | None) -> dict[str, Any]:
    common = {"id": task["id"], "verifier": task["verifier"], "version": "1", "new_in_a_later_version": 1}
    if error is not None:
        failure = {"kind": error, "message": "gone", "retryable": error != "bad_reference"}
        return {**common, "status": "error", "error": failure}
    return {**common, "status": "graded", "accuracy": 1.0, "reward": float(task["completion"])}


def _read(connection: socket.socket) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
    while len(body) < length:
        body += connection.recv(65536)
    key = re.search(rb"idempotency-key: (\S+)", head, re.IGNORECASE)
    assert key is not None, head
    return Asked(key[1].decode(), body)


def response(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def right(connection: socket.socket, answer: bytes) -> None:
    connection.sendall(response("200 OK", answer, "content-type: application/json"))


def says(status: str, *headers: str, body: bytes = b"no") -> Fault:
    return lambda connection, _: connection.sendall(response(status, body, "connection: close", *headers))


def garbage(connection: socket.socket, _: bytes) -> None:
    connection.sendall(response("200 OK", b"<html>It works!</html>", "connection: close"))


def no_http(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"\x16\x03\x01\x02\x00 what is this")


def half_a_body(connection: socket.socket, answer: bytes) -> None:
    connection.sendall(response("200 OK", answer)[: -len(answer) // 2])


def half_a_body_that_looks_whole(connection: socket.socket, answer: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + answer[: len(answer) // 2])


def nothing(connection: socket.socket, _: bytes) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def reset(connection: socket.socket, _: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silence(connection: socket.socket, _: bytes) -> None:
    connection.recv(1)  # until the client goes away


def drip(connection: socket.socket, answer: bytes) -> None:
    for byte in response("200 OK", answer):
        connection.sendall(bytes([byte]))
        time.sleep(0.02)


def proxy_that_cuts(seconds: float) -> Fault:
    def cut(connection: socket.socket, _: bytes) -> None:
        time.sleep(seconds)
        connection.sendall(response("504 Gateway Timeout", b"<html>upstream timed out</html>", "connection: close"))

    return cut


def altered(change: Callable[[list[dict[str, Any]]], object]) -> Fault:
    """Answer 200 with verdicts that were changed."""

    def send(connection: socket.socket, answer: bytes) -> None:
        verdicts = json.loads(answer)["verdicts"]
        change(verdicts)
        connection.sendall(response("200 OK", json.dumps({"verdicts": verdicts}).encode(), "connection: close"))

    return send
