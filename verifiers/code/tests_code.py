"""What can be told about test code by reading it: which names it takes from the completion, and how it uses them.

Runs inside the sandbox, in the driver. It depends on the task alone, never on the completion.
"""

import ast
import builtins
import collections
import decimal
import fractions
import importlib
import symtable
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass

TESTS_FILE = "tests.py"
CHECK_FUNCTION = "check"
_PLAIN_TYPES: tuple[type, ...] = (
    *(int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, slice, type(None)),
    *(collections.deque, collections.Counter, collections.OrderedDict, collections.defaultdict),
    *(fractions.Fraction, decimal.Decimal, types.GeneratorType),
)
_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit", "SystemExit"})
_CHECKING = ("assert", "raises", "fail")  # of unittest and pytest
_PLAIN_ATTRIBUTES = frozenset(name for kind in _PLAIN_TYPES for name in dir(kind))


class BrokenTestsError(Exception):
    """The tests can never judge any completion; the message says why."""


@dataclass(frozen=True, slots=True)
class AssertCode:
    """Test code that parses, and what it needs."""

    tree: ast.Module
    free: frozenset[str]
    """Names that it loads and nothing in it binds, builtin ones left out."""
    builtin: frozenset[str]
    """Builtin names that it loads."""
    objects: frozenset[str]
    """Names of the completion whose results it uses as objects with attributes that no plain value has."""
    attributes: frozenset[str]
    """Attributes that it uses and no plain value has."""
    defines_check: bool
    calls_check: bool
    checks: int
    """Assertions in it that are about something, not `assert False`."""


def read_tests(code: str, entry_point: str | None) -> AssertCode:
    """Parse test code.

    Raises:
        BrokenTestsError: it does not parse, cannot fail, or needs what cannot be isolated.
    """
    try:
        tree = ast.parse(code, TESTS_FILE)
        compile(tree, TESTS_FILE, "exec", dont_inherit=True)
        table = symtable.symtable(code, TESTS_FILE, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BrokenTestsError(f"the test code does not parse: {error}") from None
    nodes = list(ast.walk(tree))
    if not any(_can_fail(node) for node in nodes):
        raise BrokenTestsError("the test code asserts nothing")
    loaded = _loaded(table) - _bound(table)
    aliases = {name for name in (entry_point, _check_parameter(tree)) if name is not None}
    classes = {node.id for node in nodes if isinstance(node, ast.Name) and node.id[:1].isupper()}
    objects = _used_as_objects(nodes, classes | (aliases if entry_point and entry_point[:1].isupper() else set()))
    free = loaded - vars(builtins).keys()
    _refuse_subclasses(nodes, free | aliases)
    _refuse_exits(tree)
    return AssertCode(
        tree=tree,
        free=frozenset(free),
        builtin=frozenset(loaded & vars(builtins).keys()),
        objects=frozenset(objects | (aliases if objects & aliases else set())),
        attributes=frozenset(
            node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_no_plain(node.attr)
        ),
        defines_check=_check_definition(tree) is not None,
        calls_check=any(_calls(statement, CHECK_FUNCTION) for statement in tree.body),
        checks=sum(isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant) for node in nodes),
    )


def own_modules(tests: AssertCode) -> dict[str, object]:
    """Return the standard library's modules that the tests use without importing them, by name.

    A name counts as the module when every use of it reads an attribute that the module has; a completion that defines
    something else under that name does not come in between.
    """
    uses: dict[str, set[str]] = {}
    loads: collections.Counter[str] = collections.Counter()
    for node in ast.walk(tests.tree):
        if isinstance(node, ast.Name):
            loads[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses.setdefault(node.value.id, set()).add(node.attr)
            loads[node.value.id] -= 1
    found: dict[str, object] = {}
    for name in sorted(tests.free & sys.stdlib_module_names & uses.keys()):
        module = importlib.import_module(name)
        if loads[name] == 0 and all(hasattr(module, attribute) for attribute in uses[name]):
            found[name] = module
    return found


def loads(tests: AssertCode, line: int) -> set[str]:
    """Return the names that the innermost statements around a line load."""
    around = [n for n in ast.walk(tests.tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    shortest = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)
    return {node.id for node in ast.walk(shortest) if isinstance(node, ast.Name)} if shortest is not None else set()


def unfinished_names(prompt: ast.Module) -> set[str]:
    """Return what a prompt only begins: functions without a body of their own, and classes that have such methods."""
    return {
        statement.name
        for statement in prompt.body
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and _is_unfinished(statement)
    }


def _is_unfinished(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    if isinstance(definition, ast.ClassDef):
        methods = [s for s in definition.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return any(map(_is_unfinished, methods)) or all(map(_says_nothing, definition.body))
    return all(map(_says_nothing, definition.body))


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.dump(statement)
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _can_fail(node: ast.AST) -> bool:
    if isinstance(node, (ast.Assert, ast.Raise)):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith(_CHECKING)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _loaded(module: symtable.SymbolTable) -> set[str]:
    return {
        symbol.get_name()
        for table in _tables(module)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is module or symbol.is_global())
    }


def _bound(module: symtable.SymbolTable) -> set[str]:
    return {
        symbol.get_name()
        for table in _tables(module)
        for symbol in table.get_symbols()
        if (symbol.is_assigned() or symbol.is_imported()) and (table is module or symbol.is_declared_global())
    }


def _check_definition(tree: ast.Module) -> ast.FunctionDef | None:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == CHECK_FUNCTION:
            return statement
    return None


def _check_parameter(tree: ast.Module) -> str | None:
    check = _check_definition(tree)
    return check.args.args[0].arg if check is not None and check.args.args else None


def _calls(statement: ast.stmt, name: str) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name


def _used_as_objects(nodes: list[ast.AST], classes: set[str]) -> set[str]:
    """Return the names N with a use like `N(…).push` or `v = N(…)` and `v.push`, or `N.push`.

    The attribute must be one that no plain value has, unless N is among `classes`, named as classes are.
    """
    makers = {name: maker for node in nodes for name, maker in _made(node)}
    found: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
            continue
        root = node.value
        name = _called_name(root) or (root.id if isinstance(root, ast.Name) else None)
        maker = makers.get(name, name) if name is not None else None
        if maker is not None and (maker in classes or node.attr not in _PLAIN_ATTRIBUTES):
            found.add(maker)
    return found


def _is_no_plain(attribute: str) -> bool:
    return attribute not in _PLAIN_ATTRIBUTES and not attribute.startswith("_")


def _made(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the variables that a node binds to a call's result, with the called name."""
    targets: list[ast.expr]
    value: ast.expr | None
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        targets, value = [node.target], node.value
    elif isinstance(node, ast.withitem):
        targets, value = [node.optional_vars] if node.optional_vars else [], node.context_expr
    else:
        return
    maker = _called_name(value)
    if maker is not None:
        yield from ((target.id, maker) for target in targets if isinstance(target, ast.Name))


def _called_name(node: ast.AST | None) -> str | None:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def _refuse_exits(tree: ast.Module) -> None:
    """Refuse test code that exits whatever the completion does; an exit in a branch may be the completion's doing."""
    check = _check_definition(tree)
    for statement in [*tree.body, *(check.body if check is not None else ())]:
        ending = statement.exc if isinstance(statement, ast.Raise) else getattr(statement, "value", None)
        function = ending.func if isinstance(ending, ast.Call) else ending
        if isinstance(statement, (ast.Raise, ast.Expr)) and function is not None:
            name = ast.unparse(function) if isinstance(function, (ast.Name, ast.Attribute)) else ""
            if name in _EXITS and (isinstance(statement, ast.Raise) or isinstance(ending, ast.Call)):
                raise BrokenTestsError(f"the test code ends its process (SystemExit): {name}")


def _refuse_subclasses(nodes: list[ast.AST], foreign: set[str]) -> None:
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id in foreign:
                    raise BrokenTestsError(f"the tests subclass the completion's {base.id}, which is not supported")
