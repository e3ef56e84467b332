"""What the service tells of its sandboxes and its queue, and that `assay doctor` shows it."""

import subprocess
import sys
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.service.conftest import ServerProcess, StartServer, format_tasks, frozen, wait_until


def code_task(program: str) -> dict[str, Any]:
    return {
        "verifier": "code",
        "completion": f"```python\n{program}\n```",
        "reference": {"style": "stdin", "tests": [{"input": "", "output": "1\n"}]},
    }


def samples(server: ServerProcess) -> dict[tuple[str, str], float]:
    response = server.client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(response.text)
    return {(s.name, s.labels.get("profile", "")): s.value for family in families for s in family.samples}


def test_sandboxes_are_counted_through_replacements_and_lost_workers(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_SANDBOX_RECYCLE_JOBS="3", ASSAY_WARM_VERIFIERS="code")
    server.result(server.submit([code_task("print(1)")] * 7))
    wait_until(lambda: samples(server).get(("assay_sandboxes_warm", "python")) == 2)
    for _ in range(2):  # the state is told once a second
        wait_until(lambda: not server.result(server.submit([code_task("print(1)")])) or told(server) >= 7)
    before = samples(server)
    assert before["assay_sandboxes_recycled_total", "python"] >= 2
    assert before["assay_sandboxes_started_total", "python"] == before["assay_sandboxes_recycled_total", "python"] + 2
    assert before["assay_sandboxes_lost_total", "python"] == 0
    (worker,) = server.workers()
    subprocess.run(["kill", "-9", str(worker)], check=True)
    wait_until(lambda: server.workers() not in ([], [worker]) and samples(server)["assay_ready", ""] == 1)
    wait_until(
        lambda: (
            samples(server)["assay_sandboxes_started_total", "python"]
            >= before["assay_sandboxes_started_total", "python"] + 2
        )
    )
    assert samples(server)["assay_sandboxes_jobs_total", "python"] >= before["assay_sandboxes_jobs_total", "python"]


def told(server: ServerProcess) -> float:
    return samples(server).get(("assay_sandboxes_jobs_total", "python"), 0)


def test_waiting_tasks_are_counted(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        for _ in range(3):
            server.submit(format_tasks(5))
        assert samples(server)["assay_queue_tasks", ""] == 10  # five are with the frozen worker
    wait_until(lambda: samples(server)["assay_queue_tasks", ""] == 0)


def test_doctor_shows_a_running_services_sandboxes(start_server: StartServer) -> None:
    key = "k" * 32
    server = start_server(ASSAY_WORKERS="1", ASSAY_WARM_VERIFIERS="code", ASSAY_API_KEYS=key)
    assert server.client.get("/metrics").status_code == 401
    doctor = [sys.executable, "-c", "from service.cli.app import main; main()", "doctor", "--url", server.url]
    shown = subprocess.run([*doctor, "--api-key", key], check=True, capture_output=True, text=True).stdout
    assert "python" in shown
    assert [word for word in shown.split() if word.isdigit()] == ["2", "2", "0", "0", "0", "0"]
    refused = subprocess.run(doctor, check=False, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "401" in refused.stderr
    assert "Traceback" not in refused.stderr
