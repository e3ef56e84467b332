"""One request until it is answered: what is tried again, when, and under which key."""

import asyncio
import math
import random
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx
from pydantic import ValidationError

from assay.chunks import Chunk
from assay.errors import DeadlineExceeded, Refused, ServiceFailure
from assay.verdict import Verdict
from assay.wire import GradeResponse, Problem

_BUSY = frozenset({429, 503})
"""No room now: tried again until the deadline, since a full queue empties."""
_BROKEN = frozenset({408, 425, 500, 502, 504})
"""Tried again a few times."""
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a request is tried again."""

    retries: int = 5
    """Further tries after broken connections, failures (5xx) and answers that are none."""
    first_pause_seconds: float = 0.5
    """Doubled with each try, up to 30 s; the pause is drawn from its upper half, so that callers do not go in step."""
    regrades: int = 2
    """How often tasks are sent again whose verdict is an error that says it may help."""
    attempt_seconds: float | None = None
    """Time for one try; all that the deadline leaves when None."""

    def pause(self, tries: int) -> float:
        """Return the seconds to wait after that many tries."""
        longest = min(self.first_pause_seconds * 2.0 ** min(tries - 1, 16), _LONGEST_PAUSE_SECONDS)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a call on the monotonic clock, which does not jump when the date is set."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Return the moment that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Return the seconds that are left, 0 or less when it has passed."""
        return self.at - time.monotonic()


class Exchange:
    """Sends chunks to one service by one HTTP client."""

    def __init__(self, client: httpx.AsyncClient, url: str, policy: RetryPolicy) -> None:
        self._client = client
        self._url = url
        self._policy = policy

    async def grade(self, chunk: Chunk, head: str, deadline: Deadline) -> list[Verdict]:
        """Return the chunk's verdicts, in its order and under the caller's ids.

        Args:
            chunk: the tasks.
            head: the request's other fields, as JSON members with a comma after each.
            deadline: when to give up.

        Raises:
            Refused: the request is wrong.
            ServiceFailure: there is no usable answer; `DeadlineExceeded` when time was the reason.
        """
        verdicts = await self._answered(chunk.tasks, head, deadline)
        for regrade in range(1, self._policy.regrades + 1):
            failed = {
                key: chunk.tasks[key] for key, verdict in verdicts.items() if verdict.error and verdict.error.retryable
            }
            pause = self._policy.pause(regrade)
            if not failed or deadline.left() < pause:
                break
            await asyncio.sleep(pause)
            try:
                verdicts |= await self._answered(failed, head, deadline)
            except ServiceFailure:
                break  # what is known stays known
        return [verdicts[key].model_copy(update={"id": chunk.names[key]}) for key in chunk.tasks]

    async def _answered(self, tasks: dict[str, bytes], head: str, deadline: Deadline) -> dict[str, Verdict]:
        """Send one request until there is an answer; each try has the same body and key, so it is one piece of work."""
        left = deadline.left()
        if left <= 0:
            raise DeadlineExceeded("the call's deadline passed before its tasks could be sent")
        body = f'{{{head}"deadline_seconds":{max(left, 0.001):.3f},"tasks":['.encode()
        body += b",".join(tasks.values()) + b"]}"
        headers = {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
        broken = tries = 0
        while True:
            tries += 1
            asked = 0.0
            try:
                response = await self._post(body, headers, deadline)
                if response.status_code == 200:
                    return _matched(response.content, tasks.keys())
                failure = f"answered {response.status_code}{_said(response)}"
                if response.status_code not in _BUSY | _BROKEN:
                    raise Refused(f"{self._url} {failure}", response.status_code, _problem(response))
                broken += response.status_code in _BROKEN
                asked = _retry_after(response)
            except httpx.TransportError as error:
                failure = f"broke the connection: {error or type(error).__name__}"
                broken += 1
            except _NoAnswerError as error:
                failure = f"answered 200, but {error}"
                broken += 1
            if broken > self._policy.retries:
                raise ServiceFailure(f"{self._url} {failure} (after {tries} tries)")
            pause = max(asked, self._policy.pause(tries))
            if pause >= deadline.left():
                raise DeadlineExceeded(f"{self._url} {failure} (after {tries} tries, and the deadline leaves no more)")
            await asyncio.sleep(pause)

    async def _post(self, body: bytes, headers: dict[str, str], deadline: Deadline) -> httpx.Response:
        """Post once. The whole try is timed, not each read: a server that drips bytes must not hold the trainer."""
        left = deadline.left()
        allowed = min(left, self._policy.attempt_seconds or math.inf)
        try:
            async with asyncio.timeout(max(allowed, 0.001)):
                return await self._client.post(f"{self._url}/v1/grade", content=body, headers=headers)
        except TimeoutError:
            if allowed == left:
                raise DeadlineExceeded(f"{self._url} gave no answer before the call's deadline") from None
            raise httpx.ReadTimeout(f"no answer in {allowed:g} s") from None


class _NoAnswerError(Exception):
    """What came is not the answer to what was asked."""


def _matched(content: bytes, asked: Iterable[str]) -> dict[str, Verdict]:
    """Return the verdicts by id, each task's exactly one."""
    try:
        # A newer service may say more than this client knows.
        verdicts = GradeResponse.model_validate_json(content, extra="ignore").verdicts
    except ValidationError as error:
        raise _NoAnswerError(f"not with verdicts: {error.errors(include_url=False)[0]['msg']}") from None
    found = {verdict.id: verdict for verdict in verdicts}
    if found.keys() != set(asked) or len(found) != len(verdicts):
        raise _NoAnswerError("with verdicts of other tasks than it was asked about")
    for verdict in verdicts:
        if (verdict.status == "error") != (verdict.error is not None) or (verdict.error and verdict.reward is not None):
            raise _NoAnswerError(f"the verdict of task {verdict.id} contradicts itself")
    return found


def _problem(response: httpx.Response) -> Problem | None:
    try:
        return Problem.model_validate_json(response.content, extra="ignore")
    except ValidationError:
        return None


def _said(response: httpx.Response) -> str:
    problem = _problem(response)
    return f": {problem.detail}" if problem else ""


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds that the service asks to wait, 0 when it does not say.

    A date is read against the answer's own `Date`, since the two machines' clocks need not agree.
    """
    text = response.headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            wanted = parsedate_to_datetime(text)
            seconds = (wanted - parsedate_to_datetime(response.headers["date"])).total_seconds()
        except (ValueError, KeyError, TypeError):
            return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
