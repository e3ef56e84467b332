"""What a call of the service may raise.

AssayError
├── Refused            the request is wrong (4xx): fix it, trying again does not help
├── ServiceFailure     no usable answer after all retries: down, overloaded, or not an Assay service
│   └── DeadlineExceeded   the call's time is over
└── Ungraded           there are answers, but some tasks ended in an error
"""

from collections.abc import Sequence

from assay.verdict import Verdict
from assay.wire import Problem


class AssayError(Exception):
    """Base of all that the client raises by itself."""


class Refused(AssayError):
    """The service refused the request, and would again."""

    def __init__(self, message: str, status: int, problem: Problem | None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status."""
        self.problem = problem
        """The service's own words, with the wrong fields; None when something else answered."""


class ServiceFailure(AssayError):
    """There is no usable answer after all retries; nothing is known of the tasks."""


class DeadlineExceeded(ServiceFailure):
    """The call's time was over before all answers were there."""


class Ungraded(AssayError):
    """Tasks ended in an error after all retries, and the policy is to raise."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        first = verdicts[0]
        kind, message = (first.error.kind, first.error.message) if first.error else ("unscored", "nothing was scored")
        more = f" (and {len(verdicts) - 1} more tasks)" if len(verdicts) > 1 else ""
        super().__init__(f"task {first.id!r} has no reward: {kind}: {message}{more}")
        self.verdicts = list(verdicts)
        """The verdicts without a reward."""
