"""Every setting is on the page about the service, and the files in deploy/ can be read."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

from farthing.server.settings import (
    DatasetSettings,
    LogSettings,
    OidcSettings,
    PostgresSettings,
    Protections,
    Settings,
    read_settings,
    settings_from,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
#: Settings whose place has another name.
ELSEWHERE = {"host", "port", "datasets", "limits", "logs", "oidc", "postgres"}


def test_every_setting_is_explained() -> None:
    named = {one.name for one in fields(Settings)} - ELSEWHERE
    assert [name for name in named if f"| `{name}` |" not in PAGE] == []
    for table, made in (("limits", Protections), ("logs", LogSettings)):
        assert [f.name for f in fields(made) if f"`{table}.{f.name}`" not in PAGE] == []
    for made in (DatasetSettings, PostgresSettings):
        assert [f.name for f in fields(made) if f".{f.name}`" not in PAGE] == []


def test_the_example_of_a_provider_has_every_setting() -> None:
    text = PAGE.split("```toml\n[oidc]", 1)[1].split("```", 1)[0]
    table = tomllib.loads("[oidc]" + text)["oidc"]
    assert set(table) == {one.name for one in fields(OidcSettings)}
    assert settings_from({"ledger": "b.db", "oidc": table}, ROOT).oidc is not None


def test_the_configuration_for_compose() -> None:
    settings = read_settings(ROOT / "deploy" / "farthing.toml")
    assert settings.ledger == "postgresql://farthing@db/budget"
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    for one in settings.datasets.values():
        assert f"./data:{Path(one.data).parent}:ro" in compose
    assert settings.logs.audit is not None
    assert f"state:{Path(settings.logs.audit).parent}\n" in compose


def test_relative_paths_start_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    """With Spark too, where a word without a slash is a table of the catalogue."""
    given = {
        "rows.parquet": f"{tmp_path}/rows.parquet",
        "rows/*.parquet": f"{tmp_path}/rows/*.parquet",
        "./folder": f"{tmp_path}/folder",
        "/elsewhere/rows.parquet": "/elsewhere/rows.parquet",
        "s3a://bucket/rows": "s3a://bucket/rows",
        "sales.visits": "sales.visits",
    }
    tables = {f"d{i}": {"data": data, "spark": "local"} for i, data in enumerate(given)}
    datasets = settings_from({"ledger": "b.db", "datasets": tables}, tmp_path).datasets
    assert [one.data for one in datasets.values()] == list(given.values())
    alone = settings_from({"ledger": "b.db", "datasets": {"d": {"data": "rows"}}}, tmp_path)
    assert alone.datasets["d"].data == f"{tmp_path}/rows"
