"""docs/rewards.md and docs/client.md say what happens."""

import contextlib
import inspect
import io
import re
from pathlib import Path

import assay

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "rewards.md").read_text()
CLIENT = (DOCS / "client.md").read_text()


def printed_by(program: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    return printed.getvalue()


def test_every_function_of_the_page_exists() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 10
    assert named <= set(assay.__all__)


def test_the_example_prints_what_the_page_says() -> None:
    program, said = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)
    assert printed_by(program) == said


def test_the_clients_example_prints_what_the_page_says() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", CLIENT, re.DOTALL)
    (said,) = re.findall(r"^prints `(.*?)`", CLIENT, re.MULTILINE)
    assert printed_by(program) == f"{said}\n"


def test_the_numbers_of_the_page_are_the_defaults() -> None:
    defaults = inspect.signature(assay.Assay).parameters
    for name in ("deadline_seconds", "connections", "chunk_tasks"):
        assert f"`{name}` ({defaults[name].default:g})" in CLIENT
    assert f"tries again, {assay.RetryPolicy().retries} times" in CLIENT
    assert assay.RetryPolicy().regrades == 2  # "twice"
