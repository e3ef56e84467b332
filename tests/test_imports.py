"""The shape of the source: which package may import which, names, sizes, and the public names of `assay`."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import assay
import pytest

from sandboxes.base import Profile
from verifiers.registry import REGISTRY

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"assay": ROOT / "client", "sandboxes": ROOT, "service": ROOT, "verifiers": ROOT}

ALLOWED = {
    "assay": {"assay"},
    "sandboxes": {"assay", "sandboxes"},
    "verifiers": {"assay", "sandboxes.base", "verifiers"},
    "service": {"assay", "sandboxes", "service", "verifiers"},
}
"""Which of the project's own modules each package may import."""

CLIENT_LIBRARIES = {"httpx", "pydantic"}

EMPTY_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
MAX_LINES = 400
LONGER: dict[str, str] = {
    "verifiers/code/plain.py": "both directions of one encoding, which are read against each other",
}
"""Files that may be longer, each with the reason."""


def modules(package: str) -> dict[str, Path]:
    """Return the package's modules by dotted name."""
    base = PACKAGES[package]
    found = {}
    for path in sorted((base / package).rglob("*.py")):
        parts = list(path.relative_to(base).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = {name: path for package in PACKAGES for name, path in modules(package).items()}


def imports(name: str) -> Iterator[str]:
    """Yield the dotted names that a module imports anywhere, type-checking blocks left out."""
    pending: list[ast.AST] = [ast.parse(MODULES[name].read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            module = node.module or ""
            for alias in node.names:
                yield f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module


def within(name: str, allowed: set[str]) -> bool:
    """Return whether a dotted name is one of the allowed modules or lies inside one."""
    return any(name == entry or name.startswith(entry + ".") for entry in allowed)


def top(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def loaded_with(start: str) -> set[str]:
    """Return the project's modules that importing `start` loads: those it names, and the packages around them."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name not in MODULES or name in seen:
            continue
        seen.add(name)
        parts = name.split(".")
        pending.extend(".".join(parts[:end]) for end in range(1, len(parts)))
        pending.extend(imports(name))
    return seen


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_dependencies_point_downward(package: str) -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in modules(package)
        for imported in imports(name)
        if top(imported) in {*PACKAGES, "tests", "benchmarks"} and not within(imported, ALLOWED[package])
    ]
    assert wrong == []


def test_the_client_needs_only_pydantic_and_httpx() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in modules("assay")
        for imported in imports(name)
        if top(imported) not in {"assay", *CLIENT_LIBRARIES, *sys.stdlib_module_names}
    ]
    assert wrong == []


def test_the_runner_needs_only_the_standard_library() -> None:
    runner = [name for name in MODULES if within(name, {"sandboxes.runner"})]
    assert runner
    wrong = [
        f"{name} imports {imported}"
        for name in {loaded for start in runner for loaded in loaded_with(start)}
        for imported in imports(name)
        if top(imported) not in sys.stdlib_module_names and not within(imported, {"sandboxes.runner"})
    ]
    assert wrong == []


PROFILES = [p for entry in REGISTRY.values() for p in (entry.profile, *entry.more_profiles) if p is not None]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_what_is_loaded_in_a_sandbox_needs_only_its_profile(profile: Profile) -> None:
    assert profile.modules
    wrong = [
        f"{name} imports {imported}"
        for name in {loaded for start in profile.modules for loaded in loaded_with(start)}
        for imported in imports(name)
        if top(imported) not in {*sys.stdlib_module_names, *profile.packages} and imported not in MODULES
    ]
    assert wrong == []


def test_no_module_is_named_after_nothing() -> None:
    assert [name for name in MODULES if EMPTY_NAMES & set(name.split("."))] == []


def test_no_module_is_too_long() -> None:
    sources = [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources}
    long = {name: length for name, length in lengths.items() if length > MAX_LINES}
    assert {name: length for name, length in long.items() if name not in LONGER} == {}
    assert set(LONGER) <= set(long), "an excuse that is no longer needed"


def test_public_names_of_assay() -> None:
    tree = ast.parse(MODULES["assay"].read_text())
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert assay.__all__ == sorted(assay.__all__)
    assert set(assay.__all__) == imported
    assert all(hasattr(assay, name) for name in assay.__all__)
