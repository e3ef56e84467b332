"""Hostile completions: each gets 0, and the honest solution of the same task gets 1."""

from collections.abc import Iterator
from typing import Any

import pytest

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.code_runs import judge, load

HACKS = load("hacks.jsonl")


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    with LocalSandboxes(SandboxConfig()) as opened:
        yield opened


@pytest.mark.parametrize("hack", HACKS, ids=lambda hack: str(hack["id"]))
def test_hack(hack: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    task = {"reference": hack["reference"], "options": hack.get("options", {})}
    assert judge(sandboxes, {**task, "completion": hack["completion"]}).accuracy == 0, hack["why"]
    honest = judge(sandboxes, {**task, "completion": hack["honest"]})
    assert (honest.accuracy, honest.reason) == (1, "passed")


def test_hacks_are_many_and_named_once() -> None:
    ids = [hack["id"] for hack in HACKS]
    assert len(ids) == len(set(ids)) >= 300
