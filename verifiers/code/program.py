"""Puts a program together from a prompt and what the completion wrote. Runs inside the sandbox.

Compiling hostile text can crash or exhaust the interpreter, so it is done here and never in a worker.
"""

import ast
import warnings


def assemble(prompt: str, code: str, entry_point: str | None) -> str:
    """Return the program: the code itself, or the prompt and the code when the code continues or needs it.

    The code continues the prompt when it does not stand on its own: it does not compile, or does not define the entry
    point. Code that stands on its own still gets the prompt before it, for the helpers and imports there.
    """
    if not prompt.strip():
        return code
    joined = f"{prompt}\n\n{code}" if _stands_alone(code, entry_point) else prompt + code
    for candidate in (joined, code):
        if _compiles(candidate):
            return candidate
    return joined


def _stands_alone(code: str, entry_point: str | None) -> bool:
    tree = _parse(code)
    if tree is None or not _compiles(code):
        return False
    defined = _definitions(tree)
    if entry_point is None:
        return bool(defined)
    return entry_point in defined or entry_point in _other_bindings(tree)


def _definitions(tree: ast.Module) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {statement.name for statement in tree.body if isinstance(statement, kinds)}


def _other_bindings(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in statement.names)
    return names


def _parse(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _compiles(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "main.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
