"""Grading by a running service: tasks go out in small requests, a few at a time."""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import httpx
from assay import FormatSpec, GradeResponse, Problem, RewardSpec, Task, Verdict
from pydantic import ValidationError

from service.cli.errors import CliError, InputError, UnavailableError

CHUNK_TASKS = 64
CHUNK_BYTES = 4 << 20
CONNECT_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 60.0
"""Most that one Retry-After is obeyed."""
TRANSPORT_RETRIES = 3


_Answers = list[tuple[int, Verdict]]


@dataclass(slots=True)
class _Chunk:
    """The tasks of one request."""

    positions: dict[str, int] = field(default_factory=dict)
    """Where each task stands in the whole, by its id."""
    tasks: list[bytes] = field(default_factory=list)
    """The tasks as JSON."""
    size: int = 0


class RemoteGrader:
    """Grades over HTTP with the interface of `service.embedded.EmbeddedGrader`."""

    def __init__(self, url: str, api_key: str | None, *, connections: int = 4, patience_seconds: float = 300.0) -> None:
        """Prepare to call the service.

        Args:
            url: the service's address, without `/v1`.
            api_key: sent as a bearer token when given.
            connections: requests under way at the same time.
            patience_seconds: how long one request is tried again while the service answers 429 or 503.

        Raises:
            InputError: the address is not one of HTTP.
        """
        if not url.startswith(("http://", "https://")):
            raise InputError(f"--url: {url!r} does not start with http:// or https://")
        self._url = url.rstrip("/")
        self._connections = connections
        self._patience_seconds = patience_seconds
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def grade(
        self, tasks: Iterable[Task], reward: RewardSpec, format: FormatSpec | None = None
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield (position, verdict) as requests are answered; every task gets exactly one.

        Args:
            tasks: tasks with ids, no two the same.
            reward: for tasks that do not say so themselves.
            format: for tasks that do not say so themselves.

        Raises:
            InputError: the service refused a task.
            UnavailableError: the service cannot be reached, or did not answer as it should.
        """
        head = f'"reward":{reward.model_dump_json()},'
        if format is not None:
            head += f'"format":{format.model_dump_json()},'
        # No read timeout: a batch takes as long as it takes, and the service bounds each of its tasks.
        client = httpx.AsyncClient(headers=self._headers, timeout=httpx.Timeout(None, connect=CONNECT_SECONDS))
        pending: set[asyncio.Task[_Answers]] = set()
        # The loop turns only while the caller asks for more, and an interrupt cancels the requests under way.
        with asyncio.Runner() as runner:
            try:
                for chunk in _chunks(tasks):
                    pending.add(runner.get_loop().create_task(self._send(client, head.encode(), chunk)))
                    while len(pending) >= self._connections:
                        yield from runner.run(_next_answers(pending))
                while pending:
                    yield from runner.run(_next_answers(pending))
            finally:
                runner.run(_abandon(client, pending))

    async def _send(self, client: httpx.AsyncClient, head: bytes, chunk: _Chunk) -> _Answers:
        body = b"{" + head + b'"tasks":[' + b",".join(chunk.tasks) + b"]}"
        return self._matched(chunk, await self._post(client, body))

    async def _post(self, client: httpx.AsyncClient, body: bytes) -> httpx.Response:
        """Return the answer 200; 429, 503 and broken connections are tried again, since grading changes nothing."""
        give_up = time.monotonic() + self._patience_seconds
        pause, broken = 0.5, 0
        while True:
            try:
                response = await client.post(f"{self._url}/v1/grade", content=body)
            except httpx.TransportError as error:
                broken += 1
                if broken > TRANSPORT_RETRIES or isinstance(error, httpx.ConnectError):
                    raise UnavailableError(f"no connection to {self._url}: {error or type(error).__name__}") from None
                await asyncio.sleep(pause)
                continue
            if response.status_code == httpx.codes.OK:
                return response
            if response.status_code not in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
                raise _refusal(self._url, response)
            asked = _retry_after(response)
            delay = min(max(asked or 0.0, pause), LONGEST_WAIT_SECONDS)  # never sooner than it would by itself
            if time.monotonic() + delay > give_up:
                raise _refusal(self._url, response)
            await asyncio.sleep(delay)
            pause = min(2 * pause, LONGEST_WAIT_SECONDS)

    def _matched(self, chunk: _Chunk, response: httpx.Response) -> _Answers:
        try:
            verdicts = GradeResponse.model_validate_json(response.content).verdicts
        except ValidationError:
            raise UnavailableError(f"{self._url} did not answer like an Assay service") from None
        if len(verdicts) != len(chunk.positions) or {verdict.id for verdict in verdicts} != chunk.positions.keys():
            raise UnavailableError(f"{self._url} answered with verdicts of other tasks than it was asked about")
        return [(chunk.positions[verdict.id], verdict) for verdict in verdicts]


async def _next_answers(pending: set[asyncio.Task[_Answers]]) -> _Answers:
    """Wait for the first of the requests, take those that are done out of `pending`, and return what they brought."""
    done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    pending -= done
    failed = [error for error in (task.exception() for task in done) if error is not None]
    if failed:
        raise failed[0]
    return [answer for task in done for answer in task.result()]


async def _abandon(client: httpx.AsyncClient, pending: set[asyncio.Task[_Answers]]) -> None:
    """End the requests whose answers are not wanted any more, and close the connections."""
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    await client.aclose()


def _chunks(tasks: Iterable[Task]) -> Iterator[_Chunk]:
    chunk = _Chunk()
    for index, task in enumerate(tasks):
        assert task.id is not None
        encoded = task.model_dump_json(exclude_unset=True).encode()
        if chunk.tasks and (len(chunk.tasks) == CHUNK_TASKS or chunk.size + len(encoded) > CHUNK_BYTES):
            yield chunk
            chunk = _Chunk()
        chunk.positions[task.id] = index
        chunk.tasks.append(encoded)
        chunk.size += len(encoded)
    if chunk.tasks:
        yield chunk


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that the service asked to wait; its other form, a date, is not used by Assay."""
    try:
        asked = float(response.headers["Retry-After"])
        return asked if math.isfinite(asked) and asked > 0 else None
    except (KeyError, ValueError):
        return None


def _refusal(url: str, response: httpx.Response) -> CliError:
    """Turn an answer other than 200 into the error that it means."""
    status = response.status_code
    try:
        said = Problem.model_validate_json(response.content).detail
    except ValidationError:
        said = response.reason_phrase
    if status == httpx.codes.UNAUTHORIZED:
        return InputError(f"{url} refused the API key ({status}): set ASSAY_API_KEY or --api-key")
    if status == httpx.codes.FORBIDDEN:
        return InputError(f"{url} refused the request ({status}): {said}")
    if status in (httpx.codes.BAD_REQUEST, httpx.codes.REQUEST_ENTITY_TOO_LARGE, httpx.codes.UNPROCESSABLE_ENTITY):
        return InputError(f"{url} refused tasks ({status}): {said}")
    return UnavailableError(f"{url} answered {status}: {said}")
