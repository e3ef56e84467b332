"""Finds what a task's own regular expression matches. Runs inside sandboxes only.

RE2 takes time linear in the text, whatever the pattern; what it may take of memory is bounded as well.
"""

from typing import Any

import re2  # type: ignore[import-untyped]

MAX_ANSWERS = 64
MAX_CHARACTERS = 10_001
"""Of one answer that is returned: one more than is compared."""

_MEMORY_BYTES = 8 << 20


def find(argument: dict[str, str]) -> dict[str, Any]:
    """Find all answers.

    Args:
        argument: `pattern`, and `text` to look in.

    Returns:
        `answers`: what was found, in order and not empty, the middle left out where there is too much of it; or
        `problem`: why the pattern is none.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        pattern = re2.compile(argument["pattern"], options)
    except re2.error as problem:
        said = problem.args[0] if problem.args else ""
        return {"problem": said.decode(errors="replace") if isinstance(said, bytes) else str(said)}
    group: int | str = "answer" if "answer" in pattern.groupindex else min(1, pattern.groups)
    answers: list[str] = []
    for match in pattern.finditer(argument["text"]):
        answer = (match[group] or "").strip()[:MAX_CHARACTERS]
        if answer and len(answers) < MAX_ANSWERS:
            answers.append(answer)
        elif answer:
            answers[-1] = answer
    return {"answers": answers}
