"""`assay grade` with workers of this machine."""

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from assay import Verdict

from service.cli.errors import UnavailableError
from service.cli.verdict_file import VerdictFile
from tests.cli.conftest import Run

GOOD = {"verifier": "format", "completion": "<think>a</think><answer>4</answer>"}
BAD_FORM = {"verifier": "format", "completion": "4"}


def lines(*tasks: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(task).encode() + b"\n" for task in tasks)


def without_timing(output: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in json.loads(line).items() if key != "timing"} for line in output.splitlines()]


def test_verdicts_are_written_in_order_with_a_summary(assay: Run, tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_bytes(lines(GOOD, {**BAD_FORM, "id": "second"}, *[GOOD] * 200))
    done = assay("grade", "tasks.jsonl", "-o", "verdicts.jsonl", "--workers", "2")
    assert (done.returncode, done.stderr) == (0, "")
    verdicts = without_timing((tmp_path / "verdicts.jsonl").read_text())
    assert [verdict["id"] for verdict in verdicts] == ["0", "second", *map(str, range(2, 202))]
    assert [verdict["format"] for verdict in verdicts] == [1.0, 0.0, *[1.0] * 200]
    assert done.stdout.splitlines()[3].split() == ["format", "202", "0", "–", "0.995", "0.995"]
    assert "202 tasks in" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tasks.jsonl", "verdicts.jsonl"]


def test_pipes_and_gzip(assay: Run) -> None:
    tasks = b"\xef\xbb\xbf" + lines(GOOD) + b"\n  \n" + lines(BAD_FORM)
    plain = assay("grade", "-", "-o", "-", stdin=tasks)
    packed = assay("grade", "-", "-o", "-", stdin=gzip.compress(tasks))
    assert plain.returncode == packed.returncode == 0
    assert [verdict["format"] for verdict in without_timing(plain.stdout)] == [1.0, 0.0]
    assert without_timing(plain.stdout) == without_timing(packed.stdout)
    assert "2 tasks in" in plain.stderr


def test_reward_and_format_options_fill_in_what_tasks_leave_out(assay: Run) -> None:
    own = {**GOOD, "reward": {"format_weight": 5}}
    done = assay("grade", "-", "-o", "-", "--reward-format", "0.25", stdin=lines(GOOD, own))
    assert [verdict["reward"] for verdict in without_timing(done.stdout)] == [0.25, 5.0]
    task = {"verifier": "math", "completion": "<think>2+2</think> so \\boxed{4}", "reference": "4"}
    options = ("--format", '{"answer_tag": null}', "--reward-combine", "gate", "--reward-format", "0.5")
    done = assay("grade", "-", "-o", "-", *options, stdin=lines(task, {**task, "completion": "\\boxed{4}"}))
    verdicts = without_timing(done.stdout)
    assert [(verdict["accuracy"], verdict["format"], verdict["reward"]) for verdict in verdicts] == [
        (1.0, 1.0, 1.5),
        (1.0, 0.0, 0.0),
    ]


def test_errors_are_counted_and_end_with_1(assay: Run, tmp_path: Path) -> None:
    broken = {"verifier": "math", "completion": "\\boxed{4}", "reference": ""}
    done = assay("grade", "-", "-o", "v.jsonl", stdin=lines(GOOD, broken))
    assert done.returncode == 1
    verdicts = without_timing((tmp_path / "v.jsonl").read_text())
    assert [verdict["status"] for verdict in verdicts] == ["graded", "error"]
    assert (verdicts[1]["error"]["kind"], verdicts[1]["reward"]) == ("bad_reference", None)
    assert "1 × bad_reference" in done.stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"verifier":"math","completion":"4"}', "reference: required, but missing"),
        (b'{"verifier":"mth","completion":"4"}', "verifier: unknown verifier 'mth'; known: 'format', 'math', 'code'"),
        (b'{"completion":"4"}', "verifier: required, but missing"),
        (b'{"verifier":"format","completion":"4","optoins":{}}', "optoins: unknown field; did you mean 'options'?"),
        (b'{"verifier":"format","completion":', "not JSON"),
        (b"\xff", "not UTF-8: byte 0"),
        (b"[]", "Input should be an object"),
        (b'{}],"format":{},"tasks":[{}', "not JSON"),
        (b'{"verifier":"format","completion":"4","id":"first"}', "id: 'first' is already the id of line 1"),
        (
            b'{"verifier":"code","completion":"x","reference":{"style":"stdin","tests":[]},"options":{"cpu_seconds":1e4}}',
            "options.cpu_seconds: 10000 is more than",
        ),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_graded(assay: Run, tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "v.jsonl").write_text("old\n")
    (tmp_path / "t.jsonl").write_bytes(lines({**GOOD, "id": "first"}, GOOD) + line + b"\n")
    done = assay("grade", "t.jsonl", "-o", "v.jsonl")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "assay: nothing was graded:"
    assert done.stderr.splitlines()[1].startswith(f"t.jsonl:3: {message}")
    assert (tmp_path / "v.jsonl").read_text() == "old\n"


def test_many_bad_lines_are_counted_but_not_all_shown(assay: Run) -> None:
    done = assay("grade", "-", "-o", "-", stdin=b"{}\n" * 50)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 22
    assert done.stderr.splitlines()[-1] == "… and 30 more"


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("nowhere.jsonl", "-o", "v"), b"", "nowhere.jsonl cannot be read: No such file or directory"),
        (("-", "-o", "no/such/v"), lines(GOOD), "no/such/v cannot be written: No such file or directory"),
        (("-", "-o", "v"), b"\n\n", "<stdin> holds no task"),
        (("-", "-o", "v"), gzip.compress(lines(GOOD))[:-4], "<stdin>:2: cannot be read"),
        (("-", "-o", "v", "--reward-combine", "max"), lines(GOOD), "the reward options are not valid: combine"),
        (("-", "-o", "v", "--format", "{"), lines(GOOD), "--format is not valid"),
        (("-", "-o", "v", "--url", "localhost:8000"), lines(GOOD), "--url: 'localhost:8000' does not start with http"),
    ],
)
def test_usage_errors(assay: Run, arguments: tuple[str, ...], stdin: bytes, message: str) -> None:
    done = assay("grade", *arguments, stdin=stdin)
    assert done.returncode == 2
    assert done.stderr.startswith(f"assay: {message}")
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_setting_is_named_after_where_it_came_from(assay: Run) -> None:
    done = assay("grade", "-", "-o", "-", stdin=lines(GOOD), ASSAY_PORT="many")
    assert done.returncode == 2
    assert done.stderr.startswith("assay: ASSAY_PORT: Input should be a valid integer")


def test_without_isolation_nothing_is_graded_and_one_message_says_why(assay: Run, tmp_path: Path) -> None:
    done = assay("grade", "-", "-o", "v.jsonl", stdin=lines(GOOD), ASSAY_BWRAP="/no/such/bwrap")
    assert (done.returncode, done.stdout) == (3, "")
    assert "/no/such/bwrap" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "v.jsonl").exists()


def test_a_pipe_as_output_is_written_to_and_not_replaced(assay: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert assay("grade", "-", "-o", "pipe", stdin=lines(GOOD)).returncode == 0
        assert [verdict["format"] for verdict in without_timing(os.read(reader, 65_536).decode())] == [1.0]
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_full_disk_is_told(assay: Run) -> None:
    done = assay("grade", "-", "-o", "/dev/full", stdin=lines(*[GOOD] * 100))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "assay: /dev/full cannot be written: No space left on device\n"


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(lines(GOOD) * 400_000)
    command = [str(Path(sys.executable).with_name("assay")), "grade", "t.jsonl", "-o", "v.jsonl"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as grading:
        while not any(path.stat().st_size for path in tmp_path.glob(".v.jsonl.*")):
            time.sleep(0.01)
        grading.send_signal(signal.SIGINT)
        assert grading.wait(timeout=60) == 130
        assert grading.stderr is not None
        assert grading.stderr.read().decode() == ""
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


def test_verdicts_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    order = [3, 0, 4, 1, 6, 2, 5]
    with VerdictFile(str(tmp_path / "v.jsonl")) as verdict_file:
        for index in order:
            verdict_file.add(
                index, Verdict(id=f"task-{index}" * (index + 1), verifier="format", version="1", status="graded")
            )
        assert list(tmp_path.glob("v.jsonl")) == []
        verdict_file.commit(len(order))
    written = [json.loads(line)["id"] for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert written == [f"task-{index}" * (index + 1) for index in sorted(order)]
    assert [path.name for path in tmp_path.iterdir()] == ["v.jsonl"]


def test_a_missing_verdict_is_never_passed_over(tmp_path: Path) -> None:
    verdict = Verdict(id="1", verifier="format", version="1", status="graded")
    with VerdictFile(str(tmp_path / "v.jsonl")) as verdict_file:
        verdict_file.add(1, verdict)
        with pytest.raises(UnavailableError, match="only 0 of 2"):
            verdict_file.commit(2)
    assert list(tmp_path.iterdir()) == []
