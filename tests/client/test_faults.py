"""Whatever goes wrong between client and service: the result is right or an exception, and nothing is graded twice."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from assay import (
    Assay,
    AssayError,
    AsyncAssay,
    DeadlineExceeded,
    Refused,
    RetryPolicy,
    ServiceFailure,
    Ungraded,
)

from tests.client.misbehaving import (
    Fault,
    MisbehavingServer,
    altered,
    drip,
    garbage,
    half_a_body,
    half_a_body_that_looks_whole,
    no_http,
    nothing,
    proxy_that_cuts,
    reset,
    right,
    says,
    silence,
)

QUICK = RetryPolicy(retries=3, first_pause_seconds=0.02)
FAULTS: dict[str, Fault] = {
    "429": says("429 Too Many Requests"),
    "503": says("503 Service Unavailable"),
    "500": says("500 Internal Server Error"),
    "502": says("502 Bad Gateway", body=b"<html>bad gateway</html>"),
    "408": says("408 Request Timeout"),
    "garbage": garbage,
    "an empty 200": says("200 OK", body=b""),
    "null": says("200 OK", body=b"null"),
    "no http": no_http,
    "half a body": half_a_body,
    "half a body that looks whole": half_a_body_that_looks_whole,
    "nothing": nothing,
    "reset": reset,
    "a proxy that cuts": proxy_that_cuts(0.2),
    "verdicts of other tasks": altered(lambda verdicts: verdicts[0].update(id="99")),
    "a verdict too few": altered(lambda verdicts: verdicts.pop()),
    "a verdict twice": altered(lambda verdicts: verdicts.append(verdicts[0])),
    "a reward that is no number": altered(lambda verdicts: verdicts[0].update(reward="one")),
    "an error with a reward": altered(
        lambda verdicts: verdicts[0].update(error={"kind": "internal", "message": "", "retryable": True})
    ),
    "an error without one": altered(lambda verdicts: verdicts[0].update(status="error", reward=0.0)),
}


def tasks(count: int) -> list[dict[str, Any]]:
    return [{"verifier": "format", "completion": str(number + 1)} for number in range(count)]


def expected(count: int) -> list[float]:
    return [float(number + 1) for number in range(count)]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_after_a_fault_the_rewards_are_right_and_nothing_was_graded_twice(fault: Fault) -> None:
    with MisbehavingServer(fault, fault) as server, Assay(server.url, retry=QUICK) as assay:
        assert assay.rewards(tasks(3)) == expected(3)
    assert len(server.requests) == 3
    assert len(server.keys) == 1
    assert len({request.body for request in server.requests}) == 1
    assert set(server.work.values()) == {1}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_that_stays_is_an_exception(fault: Fault) -> None:
    with (
        MisbehavingServer(*[fault] * 1000) as server,
        Assay(server.url, retry=QUICK, deadline_seconds=2.0) as assay,
        pytest.raises(ServiceFailure),
    ):
        assay.rewards(tasks(3))


@pytest.mark.parametrize("fault", [silence, drip], ids=["silence", "drip"])
def test_the_deadline_ends_a_call_that_gets_no_answer(fault: Fault) -> None:
    with MisbehavingServer(fault) as server, Assay(server.url, retry=QUICK) as assay:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            assay.rewards(tasks(2), deadline_seconds=0.5)
        assert time.monotonic() - started < 2.0


def test_a_try_that_takes_too_long_is_tried_again_under_its_key() -> None:
    policy = RetryPolicy(retries=3, first_pause_seconds=0.02, attempt_seconds=0.3)
    with MisbehavingServer(silence, silence) as server, Assay(server.url, retry=policy) as assay:
        assert assay.rewards(tasks(2)) == expected(2)
    assert len(server.keys) == 1


def test_one_broken_request_of_many_breaks_no_other() -> None:
    with (
        MisbehavingServer(right, reset, garbage, right) as server,
        Assay(server.url, retry=QUICK, chunk_tasks=5, connections=3) as assay,
    ):
        assert assay.rewards(tasks(60)) == expected(60)
    assert set(server.work.values()) == {1}
    assert len(server.keys) == 12


def test_without_anyone_there_it_is_an_exception() -> None:
    with MisbehavingServer() as gone:
        pass
    with Assay(gone.url, retry=QUICK) as assay, pytest.raises(ServiceFailure, match="broke the connection"):
        assay.rewards(tasks(1))


@pytest.mark.parametrize(
    "status", ["400 Bad Request", "401 Unauthorized", "404 Not Found", "413 Too Large", "301 Moved"]
)
def test_what_would_be_refused_again_is_not_tried_again(status: str) -> None:
    with MisbehavingServer(says(status)) as server, Assay(server.url, retry=QUICK) as assay:
        with pytest.raises(Refused) as caught:
            assay.rewards(tasks(1), on_error="none")
        assert caught.value.status == int(status[:3])
    assert len(server.requests) == 1


def test_the_problem_of_a_refusal_is_kept() -> None:
    body = b'{"type":"t","title":"T","status":422,"detail":"tasks[0].x: no","fields":[{"field":"x","message":"m"}]}'
    with MisbehavingServer(says("422 Unprocessable", body=body)) as server, Assay(server.url) as assay:
        with pytest.raises(Refused, match=r"tasks\[0\]\.x: no") as caught:
            assay.grade(tasks(1))
        assert caught.value.problem is not None
        assert caught.value.problem.fields[0].field == "x"


def test_retry_after_is_honoured_and_busy_is_no_failure() -> None:
    busy = says("429 Too Many Requests", "retry-after: 0.4")
    with MisbehavingServer(busy, busy) as server, Assay(server.url, retry=RetryPolicy(0, 0.01)) as assay:
        assert assay.rewards(tasks(1)) == expected(1)
    pauses = [later.at - earlier.at for earlier, later in zip(server.requests, server.requests[1:], strict=False)]
    assert all(0.4 <= pause < 1.5 for pause in pauses), pauses


def test_a_retry_after_beyond_the_deadline_ends_the_call_at_once() -> None:
    with MisbehavingServer(says("503 Busy", "retry-after: 60")) as server, Assay(server.url) as assay:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="503"):
            assay.rewards(tasks(1), deadline_seconds=5)
        assert time.monotonic() - started < 2.0


def test_a_date_to_retry_after_is_read_by_the_services_clock() -> None:
    busy = says(
        "503 Busy", "date: Mon, 01 Jan 2001 00:00:00 GMT", "retry-after: Mon, 01 Jan 2001 00:00:01 GMT"
    )  # a server whose clock is decades behind
    with MisbehavingServer(busy) as server, Assay(server.url, retry=QUICK) as assay:
        assert assay.rewards(tasks(1), deadline_seconds=10) == expected(1)
    assert 1.0 <= server.requests[1].at - server.requests[0].at < 3.0


@pytest.mark.parametrize("header", ["-5", "nan", "inf", "soon", ""])
def test_a_senseless_retry_after_is_ignored(header: str) -> None:
    with (
        MisbehavingServer(says("429 Busy", f"retry-after: {header}")) as server,
        Assay(server.url, retry=QUICK) as assay,
    ):
        assert assay.rewards(tasks(1), deadline_seconds=5) == expected(1)


def test_clocks_that_jump_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = iter(range(10**9, 10**12, 10**8))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    with (
        MisbehavingServer(says("503 Busy", "retry-after: 0.2"), reset) as server,
        Assay(server.url, retry=QUICK) as assay,
    ):
        assert assay.rewards(tasks(2), deadline_seconds=5) == expected(2)


def test_errors_that_may_pass_are_graded_again_and_no_others() -> None:
    with MisbehavingServer(error_rounds=2) as server, Assay(server.url, retry=QUICK) as assay:
        assert assay.rewards(tasks(2)) == expected(2)
    assert len(server.keys) == 3  # another grading is another piece of work
    with (
        MisbehavingServer(error_rounds=9, error_kind="bad_reference") as server,
        Assay(server.url) as assay,
        pytest.raises(Ungraded, match="bad_reference"),
    ):
        assay.rewards(tasks(2))
    assert len(server.keys) == 1


def test_the_policy_for_tasks_without_reward(caplog: pytest.LogCaptureFixture) -> None:
    with MisbehavingServer(error_rounds=100) as server, Assay(server.url, retry=QUICK) as assay:
        with pytest.raises(Ungraded) as caught:
            assay.rewards(tasks(2))
        assert [verdict.id for verdict in caught.value.verdicts] == ["0", "1"]
        with caplog.at_level(logging.WARNING, "assay"):
            assert assay.rewards(tasks(2), on_error="none") == [None, None]
        assert "2 tasks have no reward" in caplog.text
        assert assay.rewards(tasks(2), on_error=-0.5) == [-0.5, -0.5]
        assert [verdict.reward for verdict in assay.grade(tasks(2))] == [None, None]
        with pytest.raises(ValueError, match="on_error is 'zero'"):
            assay.rewards(tasks(1), on_error="zero")  # type: ignore[arg-type]


def test_a_lost_request_loses_only_its_own_tasks() -> None:
    with (
        MisbehavingServer(*[reset] * 4) as server,
        Assay(server.url, retry=QUICK, chunk_tasks=2, connections=1) as assay,
    ):
        assert assay.rewards(tasks(6), on_error="none") == [None, None, 3.0, 4.0, 5.0, 6.0]


def test_async_client_in_two_event_loops() -> None:
    with MisbehavingServer(reset) as server:
        client = AsyncAssay(server.url, retry=QUICK)

        async def call() -> list[float | None]:
            async with client:
                return await client.rewards(tasks(4))

        assert asyncio.run(call()) == expected(4)
        assert asyncio.run(call()) == expected(4)


def test_an_abandoned_stream_ends_its_requests() -> None:
    with MisbehavingServer(right, silence, silence) as server, Assay(server.url, chunk_tasks=1, connections=3) as assay:
        stream = assay.stream(tasks(3))
        position, verdict = next(stream)
        assert verdict.reward == position + 1.0
        started = time.monotonic()
        stream.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 2.0  # the silent server notices that its callers went away


@pytest.mark.parametrize(
    ("make", "says_what"),
    [
        (Assay, "no service: give url"),
        (lambda: Assay("127.0.0.1:8000"), "must start with http"),
        (lambda: Assay("http://x", connections=0), "connections is 0"),
        (lambda: Assay("http://x", deadline_seconds=0), "deadline_seconds is 0"),
    ],
)
def test_wrong_arguments_are_named(make: Callable[[], Assay], says_what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_URL", raising=False)
    with pytest.raises(ValueError, match=says_what):
        make()


@pytest.mark.parametrize(
    ("fields", "says_what"),
    [
        ({"completion": "\ud800"}, r"tasks\[1\] holds half a surrogate pair"),
        ({"completion": float("nan")}, r"tasks\[1\] is not JSON"),
        ({"completion": {1, 2}}, r"tasks\[1\] is not JSON: set is no JSON value"),
    ],
)
def test_a_task_that_cannot_be_sent_is_named(fields: dict[str, Any], says_what: str) -> None:
    with MisbehavingServer() as server, Assay(server.url) as assay, pytest.raises(ValueError, match=says_what):
        assay.grade([*tasks(1), {"verifier": "format", **fields}])


def test_all_errors_have_one_base() -> None:
    assert issubclass(DeadlineExceeded, ServiceFailure)
    assert all(issubclass(error, AssayError) for error in (Refused, ServiceFailure, Ungraded))
