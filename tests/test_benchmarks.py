"""The benchmark compares like with like: the plain way gives the same verdicts."""

import pytest

from benchmarks import workloads
from benchmarks.__main__ import main
from benchmarks.plain import grade_plainly
from benchmarks.structured import comparisons
from service.embedded import EmbeddedGrader
from service.settings import Settings


def test_both_ways_give_the_same_verdicts(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(workloads, "DATA", tmp_path)  # the own-written tasks, which are there on every machine
    tasks = [
        *workloads.numbers_workload(1).tasks,
        *workloads.expressions_workload(len(workloads.EXPRESSIONS)).tasks[3:5],
        *workloads.stdin_workload(2).tasks,
        *workloads.assert_workload(2).tasks,
    ]
    with EmbeddedGrader(Settings(workers=1)) as grader:
        own = dict(grader.grade(tasks))
    assert [own[index].accuracy for index in range(len(tasks))] == [grade_plainly(task) for task in tasks]
    assert {verdict.accuracy for verdict in own.values()} == {0.0, 1.0}


# The docker client forgets to close the socket by which it finds that there is no engine.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_benchmark_prints_its_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = [
        workloads.numbers_workload(2),
        workloads.expressions_workload(2),
        workloads.stdin_workload(2),
        workloads.assert_workload(2),
    ]
    monkeypatch.setattr("benchmarks.__main__.workloads", lambda: small)
    monkeypatch.setattr("benchmarks.floor.SECONDS", 0.1)
    monkeypatch.setattr("benchmarks.structured.SECONDS", 0.1)
    monkeypatch.setattr("benchmarks.mathematics.SECONDS", 0.1)
    monkeypatch.setattr("benchmarks.mathematics.EVERY", 12)
    main()
    printed = capsys.readouterr().out
    assert all(
        f" {name} " in printed for name in ("math, numbers", "math, expressions", "code, stdin", "code, asserts")
    )
    for way in (
        "fork of a loaded",
        "python -I -S",
        "bwrap",
        "a job of 1 test, warm",
        "a job of 10 tests, warm",
        "each of",
    ):
        assert way in printed
    for comparison in comparisons():
        rows = [line for line in printed.splitlines() if line.startswith(f" {comparison.name} ")]
        (agreed,) = {row.count(f"({len(comparison.tasks)}/{len(comparison.tasks)})") for row in rows}
        assert agreed == len(comparison.bare), rows
