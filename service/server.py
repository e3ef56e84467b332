"""Runs the gateway: uvicorn in this process, until a signal or until the dispatcher cannot start."""

import asyncio
import logging
import signal
import socket
import sys
from types import FrameType

import uvicorn

from service.app import create_app
from service.dispatch.base import Dispatcher
from service.dispatch.local import LocalDispatcher
from service.settings import Settings

logger = logging.getLogger(__name__)

_BACKLOG = 2048
_ANSWER_SECONDS = 5
"""Time to send the last answers after the dispatcher has stopped."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then stop gracefully and return.

    Raises:
        ExposureRefused: the address can be reached from other machines and there are no API keys.
        OSError: the address cannot be bound, for instance because another program has the port.
        WorkersUnavailable: workers cannot be started; the message says what to change.
    """
    settings.check_exposure()
    with _listen(settings) as listener:
        _log_to_stderr(settings.log_level)
        failures: list[Exception] = []
        dispatcher = LocalDispatcher(settings)

        def stop_because(failure: Exception) -> None:
            failures.append(failure)
            server.should_exit = True

        config = uvicorn.Config(
            create_app(settings, dispatcher, stop_because),
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="on",
            log_config=None,
            server_header=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=int(settings.shutdown_grace_seconds) + _ANSWER_SECONDS,
        )
        server = _Server(config, dispatcher)
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn raises a signal again after it has stopped; without this, that would kill the process.
            signal.signal(number, server.note_signal)
        logger.info("listening on %s", _address(listener))
        server.run(sockets=[listener])
    if failures:
        raise failures[0]


class _Server(uvicorn.Server):
    """Stops the dispatcher as soon as it stops listening, so that requests in flight get their answers in time."""

    def __init__(self, config: uvicorn.Config, dispatcher: Dispatcher) -> None:
        super().__init__(config)
        self._dispatcher = dispatcher

    def note_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        stopping = asyncio.ensure_future(self._dispatcher.stop())
        await super().shutdown(sockets)
        await stopping


def _listen(settings: Settings) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(address, family=family, backlog=_BACKLOG)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))
    logging.getLogger("uvicorn.access").addFilter(_without_query)


def _without_query(record: logging.LogRecord) -> bool:
    """Take the query string off the path in an access record: it is not ours to keep."""
    if isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, *rest = record.args
        record.args = (client, method, str(path).partition("?")[0], *rest)
    return True
