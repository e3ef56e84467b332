"""The `code` verifier: a completion is a program, and tests decide whether it is right."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from assay.tasks import CodeTask, FunctionTests, PytestTests, StdinTests

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.code.assert_tests import grade_asserts
from verifiers.code.extraction import find_program
from verifiers.code.function_tests import grade_functions
from verifiers.code.pytest_tests import grade_pytest
from verifiers.code.stdin_tests import grade_stdin

PROFILE = Profile(
    "python",
    modules=(
        "verifiers.code.assertions",
        "verifiers.code.channel",
        "verifiers.code.checker_guest",
        "verifiers.code.completion_guest",
        "verifiers.code.function_guest",
        "verifiers.code.interpreter",
        "verifiers.code.plain",
        "verifiers.code.program",
        "verifiers.code.rehearsal",
        "verifiers.code.remote",
        "verifiers.code.script_guest",
        "verifiers.code.session",
        "verifiers.code.tests_code",
        "verifiers.code.tests_driver",
    ),
    prepare="verifiers.code.script_guest:prepare",
)
PYTEST_PROFILE = Profile(
    "pytest",
    modules=(
        *PROFILE.modules,
        "verifiers.code.pytest_driver",
        "verifiers.code.pytest_session",
        "verifiers.code.solution_imports",
    ),
    packages=("_pytest", "iniconfig", "packaging", "pluggy", "py", "pygments", "pytest"),
)


class CodeVerifier(Verifier[CodeTask]):
    """Runs a completion's program against tests (see docs/verifiers/code.md)."""

    name: ClassVar[str] = "code"
    version: ClassVar[str] = "2"
    description: ClassVar[str] = (
        "A Python program that must print or return what tests expect, or pass test code with assertions."
    )
    profile: ClassVar[Profile | None] = PROFILE
    more_profiles: ClassVar[tuple[Profile, ...]] = (PYTEST_PROFILE,)
    batch_size: ClassVar[int] = 1
    example: ClassVar[dict[str, Any]] = {
        "verifier": "code",
        "completion": "```python\nprint(int(input()) * 2)\n```",
        "reference": {"style": "stdin", "tests": [{"input": "21\n", "output": "42\n"}]},
    }
    task_type = CodeTask

    def grade(self, tasks: Sequence[CodeTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """See `verifiers.base.Verifier.grade`."""
        run = partial(sandboxes.run, PROFILE)
        for task in tasks:
            program = find_program(task.completion, task.options.extract)
            if isinstance(task.reference, StdinTests):
                yield grade_stdin(task.reference, task.options, program, run)
            elif isinstance(task.reference, FunctionTests):
                yield grade_functions(task.reference, task.options, program, run)
            elif isinstance(task.reference, PytestTests):
                yield grade_pytest(task.reference, task.options, program, partial(sandboxes.run, PYTEST_PROFILE))
            else:
                yield grade_asserts(task.reference, task.options, program, run)
