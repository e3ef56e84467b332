"""A worker process: reads chunks of tasks from its socket, grades them, writes a verdict frame for each.

Started by `service.dispatch.process` as `python -m service.worker --channel FD --parent PID`. It ends when the
gateway does, however that happened: the kernel kills it with its parent, and the end of the socket ends it too.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from types import FrameType

from assay.verdict import Verdict

from sandboxes.base import Profile, SandboxUnavailable
from sandboxes.pool import LocalSandboxes
from sandboxes.runner import linux
from service import frames
from service.grading import error_verdict, grade
from verifiers.base import Failure
from verifiers.registry import REGISTRY

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_POOL_STATES = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until the gateway closes the socket."""
    parser = argparse.ArgumentParser(prog="service.worker", description="Worker process of Assay; not for people.")
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args(arguments)
    _die_with_parent(options.parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        # The gateway decides when a worker ends. A handler, unlike SIG_IGN, is not inherited by sandboxes.
        signal.signal(number, _leave_it_to_the_gateway)
    with socket.socket(fileno=options.channel) as channel:
        channel.set_inheritable(False)
        first = frames.receive(channel)
        if first is None:
            return 0
        config = frames.WorkerConfig.model_validate_json(first[1])
        _log_to_stderr(config.log_level)
        return _serve(channel, config)


def _serve(channel: socket.socket, config: frames.WorkerConfig) -> int:
    sandboxes = LocalSandboxes(config.sandboxes)
    try:
        try:
            sandboxes.warm(_profiles(config.warm_verifiers))
        except SandboxUnavailable as reason:
            channel.sendall(frames.encode_json(frames.UNAVAILABLE, {"message": str(reason)}))
            return 1
        channel.sendall(frames.encode(frames.READY, b"{}"))
        told = _tell_of_pool(channel, sandboxes)
        while (frame := frames.receive(channel)) is not None:
            chunk = frames.ChunkMessage.model_validate_json(frame[1])
            for verdict in grade(chunk.tasks, REGISTRY, sandboxes, chunk.queue_ms):
                channel.sendall(frames.encode(frames.VERDICT, _encode(verdict)))
            if time.monotonic() - told > _SECONDS_BETWEEN_POOL_STATES:
                told = _tell_of_pool(channel, sandboxes)
    except (BrokenPipeError, ConnectionResetError):
        logger.debug("the gateway has gone")
    finally:
        sandboxes.close()
    return 0


def _tell_of_pool(channel: socket.socket, sandboxes: LocalSandboxes) -> float:
    """Send the pool's state and return the time by the monotonic clock."""
    states = [asdict(state) for state in sandboxes.state()]
    channel.sendall(frames.encode_json(frames.POOL, {"profiles": states}))
    return time.monotonic()


def _profiles(verifiers: Sequence[str]) -> list[Profile]:
    """Return the sandbox profiles that the verifiers need, each once."""
    profiles = [REGISTRY[name].profile for name in verifiers]
    return list(dict.fromkeys(profile for profile in profiles if profile is not None))


def _encode(verdict: Verdict) -> bytes:
    try:
        return verdict.__pydantic_serializer__.to_json(verdict)
    except ValueError:  # text that is not Unicode, in what a verifier reports
        logger.exception("the verdict of a %s task cannot be sent", verdict.verifier)
        failure = Failure(kind="internal", message=f"the verdict of the verifier {verdict.verifier} cannot be sent")
        refused = error_verdict(verdict.id, verdict.verifier, verdict.version, failure, verdict.timing)
        return refused.__pydantic_serializer__.to_json(refused)


def _die_with_parent(parent: int) -> None:
    linux.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        sys.exit(0)


def _leave_it_to_the_gateway(_number: int, _frame: FrameType | None) -> None:
    return


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(levelname)s worker[%(process)d] %(name)s: %(message)s"
    )


if __name__ == "__main__":
    sys.exit(main())
