"""All verifiers, by the name that a task gives.

To add one: write it, add its task to `assay.tasks.Task`, list it here.
"""

from typing import Any

from verifiers.base import Verifier
from verifiers.choice import ChoiceVerifier
from verifiers.code.verifier import CodeVerifier
from verifiers.format_tags import FormatVerifier
from verifiers.function_call.verifier import FunctionCallVerifier
from verifiers.json_schema.verifier import JsonSchemaVerifier
from verifiers.math.verifier import MathVerifier
from verifiers.parses.verifier import ParsesVerifier
from verifiers.qa import QaVerifier
from verifiers.regex.verifier import RegexVerifier

REGISTRY: dict[str, Verifier[Any]] = {
    verifier.name: verifier
    for verifier in (
        FormatVerifier(),
        MathVerifier(),
        CodeVerifier(),
        JsonSchemaVerifier(),
        FunctionCallVerifier(),
        QaVerifier(),
        ChoiceVerifier(),
        RegexVerifier(),
        ParsesVerifier(),
    )
}
