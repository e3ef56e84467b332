"""`assay passk` as a person runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PNG = b"\x89PNG\r\n\x1a\n"


def sample(prompt: int, number: int, accuracy: float) -> str:
    return json.dumps({"id": f"p{prompt}/{number}", "status": "graded", "accuracy": accuracy})


def test_a_table_and_a_plot(assay: Run, tmp_path: Path) -> None:
    lines = [sample(0, n, n < 2) for n in range(4)] + [sample(1, n, 0) for n in range(4)]
    lines[1] = json.dumps({"prompt": "p0", "accuracy": 1.0})
    lines.append(json.dumps({"id": "p1/4", "status": "error", "accuracy": None}))
    (tmp_path / "samples.jsonl").write_text("\n".join(lines).replace("true", "1.0").replace("false", "0.0"))

    done = assay("passk", "samples.jsonl", "--k", "1,4,8")

    assert done.returncode == 0, done.stderr
    rows = {row.split("│")[1].strip(): row for row in done.stdout.splitlines() if row.startswith("│")}
    assert "0.2500" in rows["1"]  # (2/4 + 0) / 2
    assert "0.5000" in rows["4"]
    assert "no prompt has so many samples" in rows["8"]
    assert "2 prompts, 8 graded samples" in done.stdout
    assert "never solved 1, always solved 0, in between 1" in done.stdout
    assert "1 samples had no verdict" in done.stdout
    assert (tmp_path / "samples.passk.png").read_bytes().startswith(PNG)


def test_counts_from_standard_input(assay: Run, tmp_path: Path) -> None:
    done = assay("passk", "-", "--k", "2", "--plot", "here.png", stdin=b'{"samples": 4, "correct": 2}\n')
    assert done.returncode == 0, done.stderr
    assert "0.8333" in done.stdout
    assert (tmp_path / "here.png").read_bytes().startswith(PNG)


def test_what_grade_writes_can_be_read(assay: Run, tmp_path: Path) -> None:
    tasks = [{"id": f"a/{n}", "verifier": "math", "completion": f"\\boxed{{{n}}}", "reference": "1"} for n in range(2)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    assert assay("grade", "tasks.jsonl", "-o", "verdicts.jsonl", ASSAY_WARM_VERIFIERS="math").returncode == 0
    done = assay("passk", "verdicts.jsonl", "--k", "1,2")
    assert done.returncode == 0, done.stderr
    assert "0.5000" in done.stdout


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        ("", [], "holds no graded samples"),
        ("{", [], "samples.jsonl:1:"),
        ("[]", [], "must be a JSON object"),
        ('{"accuracy": 1}', [], "which prompt?"),
        ('{"id": "a/0"}', [], "no `accuracy`"),
        ('{"samples": 1, "correct": 2}', [], "2 correct of 1"),
        ('{"samples": 1, "correct": 1}', ["--k", "1,x"], "no list of whole numbers"),
        ('{"samples": 1, "correct": 1}', ["--k", "0"], "0 is less than 1"),
        ('{"samples": 1, "correct": 1}', ["--plot", "missing/x.png"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    assay: Run, tmp_path: Path, content: str, arguments: list[str], says: str
) -> None:
    (tmp_path / "samples.jsonl").write_text(content)
    done = assay("passk", "samples.jsonl", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert assay("passk", "missing.jsonl").returncode == 2
