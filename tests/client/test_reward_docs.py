"""docs/rewards.md says what the functions do."""

import contextlib
import io
import re
from pathlib import Path

import assay

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "rewards.md").read_text()


def test_every_function_of_the_page_exists() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 10
    assert named <= set(assay.__all__)


def test_the_example_prints_what_the_page_says() -> None:
    program, said = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue() == said
