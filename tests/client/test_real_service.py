"""The client with the real service: `Assay.local()`, threads, forks, event loops, and a service that dies."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from assay import (
    Assay,
    AsyncAssay,
    FormatSpec,
    FormatTask,
    MathTask,
    Refused,
    RetryPolicy,
    RewardSpec,
    ServiceFailure,
    TaskLike,
)

GOOD = "<think>two and two</think><answer>4</answer>"
ROOT = Path(__file__).resolve().parents[2]


def mixed(count: int) -> list[dict[str, Any]]:
    return [{"verifier": "format", "completion": GOOD if number % 3 else "4"} for number in range(count)]


def expected(count: int) -> list[float]:
    return [1.0 if number % 3 else 0.0 for number in range(count)]


def test_rewards_keep_the_order_over_many_requests(local: Assay) -> None:
    seen: list[int] = []
    assert local.rewards(mixed(500), progress=seen.append) == expected(500)
    assert seen == sorted(seen)
    assert seen[-1] == 500


def test_models_and_fields_may_be_mixed_and_ids_need_not_be_unique(local: Assay) -> None:
    tasks: list[TaskLike] = [
        MathTask(id="same", verifier="math", completion=GOOD, reference="4"),
        FormatTask(id="same", verifier="format", completion=GOOD),
        {"id": "same", "verifier": "math", "completion": GOOD, "reference": "5"},
        {"verifier": "math", "completion": "no idea", "reference": "4"},
    ]
    verdicts = local.grade(tasks, reward=RewardSpec(format_weight=0.25), format=FormatSpec())
    assert [verdict.id for verdict in verdicts] == ["same", "same", "same", "3"]
    assert [verdict.reward for verdict in verdicts] == [1.25, 0.25, 0.25, 0.0]


def test_the_service_fills_in_what_a_model_leaves_out(local: Assay) -> None:
    task = FormatTask(verifier="format", completion="<reason>a</reason><answer>4</answer>")
    assert local.rewards([task], format=FormatSpec(think_tag="reason")) == [1.0]
    assert local.rewards([task]) == [0.0]


def test_a_stream_has_each_task_once(local: Assay) -> None:
    found = dict(local.stream(mixed(200)))
    assert [found[position].reward for position in range(200)] == expected(200)


def test_no_tasks_are_no_rewards(local: Assay) -> None:
    assert local.rewards([]) == []
    assert local.grade([]) == []


def test_a_wrong_field_is_named(local: Assay) -> None:
    with pytest.raises(Refused, match="tasks") as caught:
        local.rewards([{"verifier": "format", "completion": GOOD, "refrence": "4"}])
    assert caught.value.status == 422
    with Assay(local.url, api_key="wrong" * 5) as stranger, pytest.raises(Refused, match="401"):
        stranger.rewards(mixed(1))


def test_threads_share_a_client(local: Assay) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: local.rewards(mixed(40)), range(16))) == [expected(40)] * 16


def test_it_works_inside_a_running_event_loop(local: Assay) -> None:
    async def inside() -> list[float | None]:
        return local.rewards(mixed(5))

    assert asyncio.run(inside()) == expected(5)


def test_a_fork_has_connections_of_its_own(local: Assay) -> None:
    local.rewards(mixed(1))  # the parent's thread and connections are there
    lock = threading.Thread(target=local.rewards, args=(mixed(300),))
    lock.start()  # and in use while the fork happens
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            right = False
            try:
                right = local.rewards(mixed(20), deadline_seconds=30) == expected(20)
            finally:
                os._exit(0 if right else 1)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
    lock.join()
    assert local.rewards(mixed(20)) == expected(20)


def test_clients_can_be_pickled(local: Assay) -> None:
    with pickle.loads(pickle.dumps(local)) as copy:
        assert copy.rewards(mixed(3)) == expected(3)
    assert local.rewards(mixed(3)) == expected(3)  # the copy's end did not stop the service
    copied = pickle.loads(pickle.dumps(AsyncAssay(local.url, api_key="k" * 16, retry=RetryPolicy(retries=1))))
    assert copied.configuration()["retry"] == RetryPolicy(retries=1)


def test_a_service_that_dies_in_the_middle_is_an_exception() -> None:
    slow = {
        "verifier": "code",
        "completion": "```python\nimport time\ntime.sleep(60)\n```",
        "reference": {"style": "stdin", "tests": [{"input": "", "output": "done\n"}]},
        "options": {"wall_seconds": 100},
    }
    policy = RetryPolicy(retries=2, first_pause_seconds=0.05)
    with Assay.local(retry=policy, settings={"ASSAY_WORKERS": "1", "ASSAY_WARM_VERIFIERS": ""}) as assay:
        assert assay.rewards(mixed(2)) == expected(2)
        assert assay._server is not None
        supervisor = assay._server._process.pid
        (gateway,) = map(int, Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split())
        killer = threading.Timer(1.0, os.kill, (gateway, signal.SIGKILL))
        killer.start()
        with pytest.raises(ServiceFailure, match="broke the connection"):
            assay.rewards([*mixed(2), slow])
        killer.join()


def test_the_local_service_ends_with_its_starter() -> None:
    program = (
        "import os, signal, sys\nfrom assay import Assay\n"
        "if __name__ == '__main__':\n"
        "    assay = Assay.local(settings={'ASSAY_WORKERS': '1', 'ASSAY_WARM_VERIFIERS': ''})\n"
        "    print(assay._server._process.pid, flush=True)\n"
        "    os.kill(os.getpid(), getattr(signal, sys.argv[1]))\n"
    )
    for name in ("SIGKILL", "SIGINT"):
        done = subprocess.run(
            [sys.executable, "-c", program, name], capture_output=True, text=True, check=False, cwd=ROOT
        )
        supervisor = int(done.stdout)
        until = time.monotonic() + 20
        while Path(f"/proc/{supervisor}/task/{supervisor}/children").exists():
            if "Z" in Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[0]:
                break
            assert time.monotonic() < until, f"the service outlived a starter ended by {name}"
            time.sleep(0.05)


def test_a_local_service_that_cannot_start_says_why() -> None:
    with pytest.raises(ServiceFailure, match="ASSAY_WORKERS: Input should be"):
        Assay.local(settings={"ASSAY_WORKERS": "none"})
