"""`assay doctor`, `assay --version` and the program's own options."""

from importlib.metadata import version

from tests.cli.conftest import Run


def test_doctor_runs_a_job_and_names_the_backend(assay: Run) -> None:
    done = assay("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A job ran in a fresh sandbox" in done.stdout
    assert "Backend: bubblewrap" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_doctor_says_what_is_missing(assay: Run) -> None:
    done = assay("doctor", ASSAY_BWRAP="/no/such/bwrap")
    assert done.returncode == 1
    assert "bubblewrap cannot isolate here" in done.stdout
    assert "/no/such/bwrap" in done.stdout


def test_a_bwrap_that_cannot_isolate_is_found_out(assay: Run) -> None:
    done = assay("doctor", ASSAY_BWRAP="/bin/false")
    assert done.returncode == 1
    assert "bubblewrap cannot isolate here" in done.stdout


def test_version(assay: Run) -> None:
    done = assay("--version")
    assert (done.returncode, done.stdout) == (0, f"assay {version('assay-server')}\n")


def test_help_lists_the_commands(assay: Run) -> None:
    done = assay("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("serve", "grade", "demo", "doctor"))


def test_serving_others_without_keys_is_refused(assay: Run) -> None:
    done = assay("serve", "--host", "0.0.0.0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "refusing to bind 0.0.0.0" in done.stderr
    assert "Traceback" not in done.stderr
