"""Errors of the HTTP interface: each is an RFC 9457 problem.

    ServiceProblem
    ├── MalformedBody            400  not JSON, or not UTF-8
    ├── Unauthorized             401  no valid API key
    ├── Forbidden                403  a web page, or a host name that is not this machine's
    ├── NotFound                 404
    ├── MethodNotAllowed         405
    ├── BodyTooLarge             413
    ├── UnsupportedMediaType     415
    ├── InvalidRequest           422  well-formed, but fields are wrong
    ├── TooManyTasks             429  the queue or the job store is full
    ├── InternalProblem          500
    └── Unavailable              503  not warm yet, or stopping

Programs branch on `status` and `type`; `detail` and `fields` are for people and name the fix.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from assay.wire import Problem, ProblemField

MAX_FIELDS = 20
_TYPE_PREFIX = "https://assay.invalid/problems/"


class ServiceProblem(Exception):
    """An error that the caller sees."""

    status: ClassVar[int]
    slug: ClassVar[str]
    """Last part of the problem's type."""
    title: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        fields: Sequence[ProblemField] = (),
        retry_after_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fields = tuple(fields)
        self.retry_after_seconds = retry_after_seconds
        self.headers = dict(headers or {})
        if retry_after_seconds is not None:
            self.headers["retry-after"] = str(max(1, round(retry_after_seconds)))

    def problem(self) -> Problem:
        """Return the response's body."""
        return Problem(
            type=_TYPE_PREFIX + self.slug,
            title=self.title,
            status=self.status,
            detail=self.detail,
            fields=list(self.fields),
            retry_after_seconds=self.retry_after_seconds,
        )


class MalformedBody(ServiceProblem):
    """The body is not JSON."""

    status, slug, title = 400, "malformed-body", "The body is not JSON"


class BadHeader(ServiceProblem):
    """A header's value makes no sense."""

    status, slug, title = 400, "bad-header", "A header is not valid"


class Unauthorized(ServiceProblem):
    """No valid API key."""

    status, slug, title = 401, "unauthorized", "An API key is needed"


class Forbidden(ServiceProblem):
    """The request comes from where none may."""

    status, slug, title = 403, "forbidden", "Requests from there are refused"


class NotFound(ServiceProblem):
    """Nothing is there."""

    status, slug, title = 404, "not-found", "Not found"


class MethodNotAllowed(ServiceProblem):
    """The path exists, but not for this method."""

    status, slug, title = 405, "method-not-allowed", "The method is not allowed here"


class BodyTooLarge(ServiceProblem):
    """More bytes than the service takes."""

    status, slug, title = 413, "body-too-large", "The body is too large"


class UnsupportedMediaType(ServiceProblem):
    """The body is something else than JSON."""

    status, slug, title = 415, "unsupported-media-type", "The body must be JSON"


class InvalidRequest(ServiceProblem):
    """Fields are missing, unknown or out of their bounds."""

    status, slug, title = 422, "invalid-request", "The request is not valid"

    @classmethod
    def of(cls, fields: Sequence[ProblemField]) -> "InvalidRequest":
        """Make one of wrong fields; only the first ones are shown."""
        shown = fields[:MAX_FIELDS]
        detail = f"{shown[0].field}: {shown[0].message}"
        if len(shown) == MAX_FIELDS:
            detail += f" (the first {MAX_FIELDS} wrong fields are listed)"
        elif len(shown) > 1:
            detail += f" (and {len(shown) - 1} more wrong)"
        return cls(detail, fields=shown)


class TooManyTasks(ServiceProblem):
    """No room at this moment."""

    status, slug, title = 429, "queue-full", "The service is full"


class InternalProblem(ServiceProblem):
    """A defect of the service."""

    status, slug, title = 500, "internal", "The service failed"


class Unavailable(ServiceProblem):
    """The service cannot grade at this moment."""

    status, slug, title = 503, "unavailable", "The service is not ready"
