"""What a program of a compiled language runs as, with standard input and output."""

from typing import Any

from assay.tasks import CodeOptions

from sandboxes.base import Outcome
from verifiers.code.compiling import Compiled
from verifiers.code.languages import Language

PROGRAM_GUEST = "verifiers.code.program_guest:run_program"


def argument_of(
    language: Language, command: tuple[str, ...], compiled: Compiled, options: CodeOptions
) -> dict[str, Any]:
    """Return the argument of `verifiers.code.program_guest.run_program`."""
    heap = str(int(options.memory_mb * language.heap_share))
    return {
        "command": [word.replace("HEAP_MB", heap) for word in command],
        "environment": language.environment,
        "executables": compiled.executables,
    }


def out_of_memory(language: Language, outcome: Outcome) -> bool:
    """Whether a program that failed says that it had no memory left."""
    return not outcome.ok and any(sign in outcome.stderr for sign in language.memory_signs)
