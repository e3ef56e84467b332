"""The HTTP interface. `create_app` makes the application; routes only translate, the work is done below them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from assay.groups import GroupsResponse, PassAtKResponse
from assay.tasks import Task
from assay.verdict import Verdict
from assay.wire import GradeResponse, JobAccepted, JobStatus, VerifierInfo
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST

from service import catalogue, openapi
from service.access import AccessGuard
from service.admission import admit
from service.bodies import read_json_body
from service.dispatch.base import Dispatcher, QueueFull, Stopping, Submission
from service.dispatch.local import LocalDispatcher
from service.errors import BadHeader, InvalidRequest, TooManyTasks, Unavailable
from service.groups import GroupsBody, pass_at_k
from service.jobs import Job, JobStore
from service.metrics import Metrics
from service.problems import handle_problems
from service.responses import model_response
from service.settings import Settings
from service.validation import request_parser

logger = logging.getLogger(__name__)


def create_app(
    settings: Settings,
    dispatcher: Dispatcher | None = None,
    on_start_failure: Callable[[Exception], None] | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        settings: all settings.
        dispatcher: what brings tasks to workers; worker processes of this machine when left out.
        on_start_failure: called when the dispatcher cannot start; the application answers 503 from then on.
    """
    gateway = Gateway(settings, dispatcher or LocalDispatcher(settings))

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        starting = asyncio.get_running_loop().create_task(gateway.start(on_start_failure))
        try:
            yield
        finally:
            await gateway.dispatcher.stop()
            starting.cancel()

    app = FastAPI(
        title="Assay",
        version=openapi.VERSION,
        description=openapi.DESCRIPTION,
        lifespan=lifespan,
        redoc_url=None,
    )
    app.state.gateway = gateway
    app.add_middleware(AccessGuard, keys=settings.api_keys)
    handle_problems(app)
    _add_grading(app, gateway)
    _add_groups(app, gateway)
    _add_jobs(app, gateway)
    _add_information(app, gateway)
    openapi.describe(app)
    return app


class Gateway:
    """What the routes share."""

    def __init__(self, settings: Settings, dispatcher: Dispatcher) -> None:
        self.settings = settings
        self.dispatcher = dispatcher
        self.jobs = JobStore(
            max_jobs=settings.max_jobs, max_tasks=settings.max_job_tasks, ttl_seconds=settings.job_ttl_seconds
        )
        self.metrics = Metrics(dispatcher)
        self._parse = request_parser(settings.max_tasks)

    async def start(self, on_failure: Callable[[Exception], None] | None) -> None:
        """Start the dispatcher while the first requests may already wait."""
        try:
            await self.dispatcher.start()
            logger.info("ready: the workers are warm")
        except Exception as failure:
            logger.error("cannot start: %s", failure)
            if on_failure is not None:
                on_failure(failure)

    async def receive(self, request: Request) -> tuple[list[Task], float | None]:
        """Read a request's body and return its resolved tasks and its deadline in seconds."""
        body = await read_json_body(request, self.settings.max_body_bytes)
        parsed = self._parse(body)
        return admit(parsed, self.settings), parsed.deadline_seconds

    async def receive_groups(self, request: Request) -> tuple[GroupsBody, list[Task]]:
        """Read a request's body and return its groups and their resolved tasks, in one row."""
        groups = GroupsBody(
            await read_json_body(request, self.settings.max_body_bytes), self._parse, self.settings.max_body_bytes
        )
        try:
            return groups, admit(groups.graded, self.settings)
        except InvalidRequest as problem:
            raise groups.renamed(problem) from None

    def submit(self, tasks: Sequence[Task], deadline_seconds: float | None) -> Submission:
        """Queue tasks, or say when there will be room."""
        try:
            return self.dispatcher.submit(tasks, deadline_seconds=deadline_seconds)
        except QueueFull as full:
            raise TooManyTasks(
                f"the queue has no room for {len(tasks)} more tasks", retry_after_seconds=full.retry_after_seconds
            ) from full
        except Stopping as stopping:
            raise Unavailable(str(stopping), retry_after_seconds=5.0) from stopping


def _add_grading(app: FastAPI, gateway: Gateway) -> None:
    @app.post(
        "/v1/grade",
        summary="Grade a batch and wait for it",
        tags=["grading"],
        response_model=None,
        responses={200: {"model": GradeResponse}, **openapi.problems(400, 413, 415, 422, 429, 503)},
        openapi_extra=openapi.GRADE_REQUEST_BODY,
    )
    async def grade(request: Request) -> Response:
        """Grade the tasks and answer when all are graded, one verdict per task in the request's order.

        A task that could not be graded has an error in its place; the answer is still 200. Tasks that have not
        started when the caller disconnects are cancelled.
        """
        tasks, deadline_seconds = await gateway.receive(request)
        submission = gateway.submit(tasks, deadline_seconds)
        verdicts = await _collect_unless_disconnected(submission, request)
        return model_response(GradeResponse.model_construct(verdicts=verdicts))


async def _collect_unless_disconnected(submission: Submission, request: Request) -> list[Verdict]:
    """Return the verdicts in the order of the tasks; cancel what has not started when the caller goes away."""
    verdicts: list[Verdict | None] = [None] * submission.total

    async def collect() -> None:
        async for position, verdict in submission:
            verdicts[position] = verdict

    async def disconnection() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        submission.cancel()

    watching = asyncio.ensure_future(disconnection())
    try:
        await collect()
    finally:
        watching.cancel()
        submission.cancel()
    return [verdict for verdict in verdicts if verdict is not None]


def _add_groups(app: FastAPI, gateway: Gateway) -> None:
    @app.post(
        "/v1/groups",
        summary="Grade groups of completions, with advantages",
        tags=["grading"],
        response_model=None,
        responses={200: {"model": GroupsResponse}, **openapi.problems(400, 413, 415, 422, 429, 503)},
        openapi_extra=openapi.body_of("GroupsRequest"),
    )
    async def grade_groups(request: Request) -> Response:
        """Grade the completions of each prompt; return rewards, advantages, masks, and which groups to keep.

        A completion that could not be graded has null in place of its reward and advantage; the answer is still 200.
        """
        groups, tasks = await gateway.receive_groups(request)
        submission = gateway.submit(tasks, groups.request.deadline_seconds)
        return model_response(groups.results(await _collect_unless_disconnected(submission, request)))

    @app.post(
        "/v1/pass_at_k",
        summary="pass@k from counts",
        tags=["grading"],
        response_model=None,
        responses={200: {"model": PassAtKResponse}, **openapi.problems(400, 413, 415, 422)},
        openapi_extra=openapi.body_of("PassAtKRequest"),
    )
    async def estimate_pass_at_k(request: Request) -> Response:
        """Return the unbiased estimate for each k with its confidence interval, and how many prompts teach nothing."""
        body = await read_json_body(request, gateway.settings.max_body_bytes)
        return model_response(await asyncio.to_thread(pass_at_k, body))


def _add_jobs(app: FastAPI, gateway: Gateway) -> None:
    @app.post(
        "/v1/jobs",
        status_code=202,
        summary="Grade a batch in the background",
        tags=["jobs"],
        response_model=None,
        responses={202: {"model": JobAccepted}, **openapi.problems(400, 413, 415, 422, 429, 503)},
        openapi_extra=openapi.GRADE_REQUEST_BODY,
    )
    async def create_job(request: Request) -> Response:
        """Start grading the tasks; the job's address is in the `Location` header."""
        tasks, deadline_seconds = await gateway.receive(request)
        gateway.jobs.check_room(len(tasks))
        job = gateway.jobs.add(gateway.submit(tasks, deadline_seconds))
        return model_response(JobAccepted(id=job.id, total=job.total), 202, {"location": f"/v1/jobs/{job.id}"})

    @app.get(
        "/v1/jobs/{job_id}",
        summary="Progress of a job, and its verdicts when all are there",
        tags=["jobs"],
        response_model=None,
        responses={200: {"model": JobStatus}, **openapi.problems(404)},
    )
    async def job_status(job_id: str) -> Response:
        """Return how far the job is; with all verdicts, in the request's order, once it is not running any more."""
        return model_response(gateway.jobs.get(job_id).status(with_verdicts=True))

    @app.get(
        "/v1/jobs/{job_id}/events",
        summary="Each verdict of a job as it comes",
        tags=["jobs"],
        response_model=None,
        responses={
            200: {"description": "Server-sent events", "content": {"text/event-stream": {}}},
            **openapi.problems(400, 404),
        },
    )
    async def job_events(job_id: str, request: Request) -> Response:
        """Stream an event `verdict` for each verdict in order of completion, from the first one on, then `done`.

        Each `verdict` has a sequence number as its `id`; a `Last-Event-ID` header resumes after that one. The data of
        `done` is the job's status without verdicts.
        """
        job = gateway.jobs.get(job_id)
        after = _last_event_id(request)
        if after > job.events and job.finished_at is None:  # `done` would be a lie
            raise BadHeader(f"Last-Event-ID {after} is no event of this job, which has had {job.events} so far")
        return StreamingResponse(
            _events(job, after, gateway.settings.sse_keep_alive_seconds),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )

    @app.delete(
        "/v1/jobs/{job_id}",
        summary="Cancel what of a job has not started",
        tags=["jobs"],
        response_model=None,
        responses={200: {"model": JobStatus}, **openapi.problems(404)},
    )
    async def cancel_job(job_id: str) -> Response:
        """Give each task that has not started an error of kind `cancelled`; what runs finishes.

        The state stays `running` until that is so, then it is `cancelled`. Cancelling twice, or too late, is no error.
        """
        job = gateway.jobs.get(job_id)
        job.cancel()
        await asyncio.sleep(0)  # lets the cancelled tasks' verdicts be counted
        return model_response(job.status(with_verdicts=False))


def _last_event_id(request: Request) -> int:
    text = request.headers.get("last-event-id", "").strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadHeader("Last-Event-ID must be the `id` of an event of this job: a whole number")
    return int(text)


async def _events(job: Job, after: int, keep_alive_seconds: float) -> AsyncIterator[bytes]:
    async for event in job.follow(after, keep_alive_seconds):
        if event is None:
            yield b": keep-alive\n\n"
            continue
        number, verdict = event
        yield b"id: %d\nevent: verdict\ndata: %s\n\n" % (number, verdict.__pydantic_serializer__.to_json(verdict))
    yield b"event: done\ndata: %s\n\n" % job.status(with_verdicts=False).model_dump_json().encode()


def _add_information(app: FastAPI, gateway: Gateway) -> None:
    listed = catalogue.build()

    @app.get("/v1/verifiers", summary="The catalogue of verifiers", tags=["information"])
    async def verifiers() -> list[VerifierInfo]:
        """Return every verifier with its version, its task's schema and an example that is graded 1."""
        return listed

    @app.get(
        "/metrics",
        summary="Metrics for Prometheus",
        tags=["information"],
        response_class=Response,
        responses={200: {"description": "Prometheus's text format", "content": {"text/plain": {}}}},
    )
    async def metrics() -> Response:
        """Return the state of the sandboxes and of the queue; needs a key where other paths do."""
        return Response(gateway.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/healthz", summary="Whether the process lives", tags=["information"])
    async def healthz() -> dict[str, str]:
        """Answer as long as the gateway does; needs no key."""
        return {"status": "ok"}

    @app.get(
        "/readyz",
        summary="Whether tasks would be graded now",
        tags=["information"],
        responses=openapi.problems(503),
    )
    async def readyz() -> dict[str, str]:
        """Answer 200 when workers are warm; needs no key."""
        if not gateway.dispatcher.ready:
            raise Unavailable("no worker is warm yet, or the service is stopping", retry_after_seconds=1.0)
        return {"status": "ready"}
