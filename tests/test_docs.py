"""What the documents say is what happens: commands run, links lead somewhere, tables are complete."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from assay import GradeRequest
from pydantic_core import PydanticUndefined

from service.app import create_app
from service.cli.app import app
from service.settings import Settings
from verifiers.registry import REGISTRY

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("t*/*/README.md")]
SERVED_AT = "http://127.0.0.1:8000"


def block(language: str, holding: str) -> str:
    """Return the one fenced block of the README in that language that holds a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if holding in text]
    return str(found)


@pytest.fixture(scope="module")
def served_at() -> Iterator[str]:
    """Start the service as the README does, but on a free port."""
    command = [str(Path(sys.executable).with_name("assay")), "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = next(filter(None, (re.search(r"listening on (\S+)", line) for line in server.stderr)), None)
        assert found, "the service did not start"
        drain = threading.Thread(target=server.stderr.read)  # a full pipe would stop the service
        drain.start()
        yield found[1]
        server.terminate()
        drain.join()


def without_timing(text: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text)
    return {"verdicts": [{**verdict, "timing": None} for verdict in answer["verdicts"]]}


def test_the_curl_of_the_readme_gives_the_answer_of_the_readme(served_at: str) -> None:
    if shutil.which("curl") is None and not os.environ.get("CI"):
        pytest.skip("curl is not installed")
    command = block("sh", "curl").replace(SERVED_AT, served_at)
    assert served_at in command
    done = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True)
    assert without_timing(done.stdout) == without_timing(block("json", "verdicts"))


def test_the_training_example_prints_what_the_readme_says(served_at: str) -> None:
    program = block("python", "httpx").replace(SERVED_AT, served_at)
    assert served_at in program
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    (said,) = re.findall(r"^prints `(\[.*\])`", README, re.MULTILINE)
    assert done.stdout == f"{said}\n"


def test_make_targets_of_the_documents_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for path in DOCUMENTS for name in re.findall(r"(?:^|`)make (\w+)", path.read_text(), re.MULTILINE)}
    assert {"demo", "test", "check", "bench", "serve"} <= named
    assert named <= targets


def test_commands_of_the_readme_exist() -> None:
    commands = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    assert set(re.findall(r"`assay (\w+)", README)) == commands


def test_verifiers_of_the_readme_are_those_of_the_registry() -> None:
    assert re.findall(r"^\| \[`(\w+)`\]\(docs/verifiers/\1\.md\) \| ", README, re.MULTILINE) == list(REGISTRY)


def test_the_table_of_requests_is_the_openapi_one() -> None:
    documented = set()
    for row in re.findall(r"^\| (`(?:GET|POST|DELETE) [^|]*) \|", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE):
        documented |= set(re.findall(r"`(\w+) (\S+)`", row))
    paths = create_app(Settings()).openapi()["paths"]
    assert documented == {(method.upper(), path) for path, methods in paths.items() for method in methods}


def test_the_example_request_is_valid() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL)
    assert len(GradeRequest.model_validate_json(example).tasks) == 2


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()) if "://" not in link]
    missing = [link for link in links if not (document.parent / link.partition("#")[0]).exists()]
    assert missing == []


def settings_table() -> str:
    """Return the table of settings as the README must have it."""
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        if field.default_factory is not None:
            default = "number of CPUs"
        elif field.default is PydanticUndefined or field.default in (None, ()):
            default = "–"
        else:
            default = f"`{field.default}`"
        meaning = " ".join((field.description or "").split())
        rows.append(f"| `ASSAY_{name.upper()}` | {default} | {meaning} |")
    return "\n".join(rows)


def test_the_table_of_settings_is_complete() -> None:
    assert settings_table() in README, f"put this into the README:\n{settings_table()}"


def test_the_bundled_pip_is_the_one_that_is_written_down() -> None:
    (wheel,) = (ROOT / "tools" / "bootstrap").glob("*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for name in ("bootstrap.py", "README.md"):
        text = wheel.with_name(name).read_text()
        assert wheel.name in text
        assert digest in text


def test_the_lock_file_holds_every_dependency_with_hashes_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    locked = {}
    for entry in re.split(r"\n(?=\w)", re.sub(r"^\s*#.*\n", "", lock, flags=re.MULTILINE)):
        locked[entry.partition("==")[0].lower()] = entry.count("--hash=sha256:")
    assert [name for name, hashes in locked.items() if not hashes] == []
    for project in (ROOT / "pyproject.toml", ROOT / "client" / "pyproject.toml"):
        assert {name for name in _dependencies(project) if name not in locked} <= {"assay-client"}


def _dependencies(project: Path) -> set[str]:
    declared = tomllib.loads(project.read_text())
    listed = declared["project"]["dependencies"] + declared.get("dependency-groups", {}).get("dev", [])
    return {re.split(r"[<>=!~\[; ]", requirement)[0].lower() for requirement in listed}
