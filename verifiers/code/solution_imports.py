"""Takes the imports of the completion out of a test file, so that what they name is looked up in its process.

Runs inside the sandbox, in the driver. `from solution import f` goes, and `solution.f` becomes a name of its own; lines
stay where they are. It depends on the task alone.
"""

import ast
from dataclasses import dataclass, field

from verifiers.code.tests_code import TESTS_FILE, BrokenTestsError


@dataclass(slots=True)
class SolutionNames:
    """What a test file takes from the completion."""

    code: str
    """The test file without the imports."""
    names: dict[str, str] = field(default_factory=dict)
    """Name in the test file → name in the completion."""
    has_star: bool = False
    """It imports everything: all names that nothing else binds are the completion's."""


@dataclass(frozen=True, slots=True)
class _Edit:
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def take_out_imports(code: str, module: str) -> SolutionNames:
    """Return the test file without its imports of a module, and what they named.

    Raises:
        BrokenTestsError: it does not parse, or uses the module in another way than `module.name`.
    """
    try:
        tree = ast.parse(code, TESTS_FILE)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BrokenTestsError(f"the test code does not parse: {error}") from None
    found = SolutionNames(code)
    edits: list[_Edit] = []
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            for alias in node.names:
                if alias.name == "*":
                    found.has_star = True
                else:
                    found.names[alias.asname or alias.name] = alias.name
            edits.append(_edit(node, ""))
        elif isinstance(node, ast.Import) and any(alias.name == module for alias in node.names):
            aliases |= {alias.asname or alias.name for alias in node.names if alias.name == module}
            others = [alias for alias in node.names if alias.name != module]
            edits.append(_edit(node, ast.unparse(ast.Import(others)) if others else ""))
    used = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in aliases]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            name = f"{node.attr}__of__{node.value.id}"
            found.names[name] = node.attr
            edits.append(_edit(node, name))
            used.remove(node.value)
    if used:
        line = min(node.lineno for node in used)
        raise BrokenTestsError(f"line {line} uses the module {module} itself; only {module}.NAME is supported")
    found.code = _apply(code, edits)
    return found


def _edit(node: ast.stmt | ast.expr, text: str) -> _Edit:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = node.end_lineno - node.lineno
    if isinstance(node, ast.stmt):
        text = (text or "pass") + " \\\n" * lines  # as many lines as before
    return _Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text)


def _apply(code: str, edits: list[_Edit]) -> str:
    # Columns are counted in bytes of UTF-8; lines end as the parser sees them.
    lines = code.encode().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        (first, begin), (last, end) = edit.start, edit.end
        changed = lines[first - 1][:begin] + edit.text.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = changed.split(b"\n")
    return b"\n".join(lines).decode()
