"""Where the program is found in a completion."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers.code.extraction import Rule, find_program

RULES: tuple[Rule, ...] = ("auto", "last_fence", "first_fence", "raw")


@pytest.mark.parametrize(
    ("completion", "text", "source"),
    [
        ("x = 1\n", "x = 1\n", "text"),
        ("    return 1\n", "    return 1\n", "text"),
        ("<think>a</think>\n    return 1", "\n    return 1", "text"),
        ("```python\n    return 1\n```", "    return 1\n", "fence"),
        ("```\nx\n```", "x\n", "fence"),
        ("```python\nx = 1", "x = 1", "unclosed_fence"),
        ("```python", None, None),
        ("x = 1\n```\n", "x = 1\n", "before_fence"),
        ("def f():\n    pass\n```\nIt does nothing.\n", "def f():\n    pass\n", "before_fence"),
        ("Look:\n```\nx = 1\n", "x = 1\n", "unclosed_fence"),
        ("<answer>```python\nx = 1\n```</answer>", "x = 1\n", "fence"),
        ("<answer>x = 1</answer>", "x = 1", "answer"),
        ("<answer>x = 1", "x = 1", "answer"),
        ("```cpp\nint x;\n```", "int x;\n", "fence"),
        ("```cpp\nint x;\n```\n```bash\nls\n```", None, None),
        ("  ```py\n  a\n    b\n  ```", "a\n  b\n", "fence"),
        ("~~~python\na\n```\n~~~", "a\n```\n", "fence"),
        ("```python\r\na\r\n```\r\n", "a\r\n", "fence"),
        ("", None, None),
    ],
)
def test_auto(completion: str, text: str | None, source: str | None) -> None:
    found = find_program(completion, "auto")
    assert (found.text if found else None, found.source if found else None) == (text, source)


@given(st.text(alphabet="`~ \npyx<>/thinkanswer\r\t", max_size=200), st.sampled_from(RULES))
def test_the_span_is_where_the_text_stands(completion: str, rule: Rule) -> None:
    found = find_program(completion, rule)
    if found is not None:
        span = completion[found.start : found.end]
        assert found.text.strip()
        assert [line.lstrip() for line in span.split("\n")] == [line.lstrip() for line in found.text.split("\n")]


@pytest.mark.parametrize(
    "piece",
    ["```python\nx\n```\n", "```", "`", "~~~~\n", "</think>", "<answer>", "\n", " ", "``` a" + " " * 50, "```python\n"],
)
def test_time_is_linear_in_length(piece: str) -> None:
    completion = piece * (2_000_000 // len(piece))
    for rule in RULES:
        started = time.process_time()
        find_program(completion, rule)
        assert time.process_time() - started < 3
