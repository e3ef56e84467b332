"""The sandboxes of a running service, as its metrics tell of them."""

import httpx
from prometheus_client.parser import text_string_to_metric_families
from rich import box
from rich.table import Table

from service.cli.errors import CliError

_COLUMNS = {
    "warm": "assay_sandboxes_warm",
    "started": "assay_sandboxes_started_total",
    "jobs": "assay_sandboxes_jobs_total",
    "recycled": "assay_sandboxes_recycled_total",
    "lost": "assay_sandboxes_lost_total",
    "doubted": "assay_sandboxes_doubted_total",
}


def pool_table(url: str, api_key: str | None) -> Table:
    """Return a table of the service's sandboxes, by profile.

    Raises:
        CliError: the service does not answer, or not with metrics.
    """
    values: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(_fetch(url, api_key)):
        for sample in family.samples:
            if "profile" in sample.labels:
                values.setdefault(sample.labels["profile"], {})[sample.name] = sample.value
    table = Table(box=box.SIMPLE_HEAD, title="Sandboxes", title_justify="left", pad_edge=False)
    table.add_column("profile")
    for heading in _COLUMNS:
        table.add_column(heading, justify="right")
    for profile, numbers in sorted(values.items()):
        table.add_row(profile, *(f"{numbers.get(metric, 0):.0f}" for metric in _COLUMNS.values()))
    return table


def _fetch(url: str, api_key: str | None) -> str:
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        response = httpx.get(f"{url.rstrip('/')}/metrics", headers=headers, timeout=10)
        response.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CliError(f"no metrics from {url}: {error}") from None
    return response.text
