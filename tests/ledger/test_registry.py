"""An entry for the public registry, from a ledger."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from farthing.ledger import Dataset, Ledger, as_yaml, registry_entry, statement
from farthing.ledger.reports.registry import TO_DO

#: Words that a field is limited to; a field that is not here takes any text.
_CHOICES: dict[str, tuple[object, ...]] = {
    "status": ("Draft",),
    "tier": (1, 2, 3),
    "data_product_type": ("Interactive API", "SQL queries", "Summary statistics"),
    "variant_name": ("Pure DP", "Approximate DP"),
    "model_name": ("Central",),
    "release_type": ("One release", "Many releases"),
    "data_source_type": ("Static", "Dynamic"),
    "access_type": ("Interactive", "Non-interactive"),
}
#: The fields of an entry, all of which are filled in, and what each holds.
FIELDS: dict[str, Any] = {
    "url_slug": str,
    "status": str,
    "tier": int,
    "deployment": {
        "basic": {
            "name": str,
            "data_curators": list,
            "intended_use": str,
            "data_product_type": str,
            "data_product_region": str,
            "description": str,
            "publication_date": str,
        },
        "dp_variant": {"variant_name": str, "data_domain": str, "unprotected_quantities": str},
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": str,
            "model_name_details": str,
            "actors": str,
            "release_type": str,
            "release_type_details": str,
            "data_source_type": str,
            "data_source_type_details": str,
            "access_type": str,
            "access_type_details": str,
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str,
            "mechanisms": str,
            "justification": str,
        },
        "administrative": {"sources": str, "notes": str, "registry_authors": list},
    },
}


def check_entry(entry: Any, fields: Any = FIELDS, name: str = "the entry") -> None:
    """AssertionError unless every field is known, of its kind and one of its choices."""
    if isinstance(fields, Mapping):
        if not isinstance(entry, Mapping) or set(entry) != set(fields):
            raise AssertionError(f"{name} must have the fields {', '.join(fields)}")
        for inner, kind in fields.items():
            check_entry(entry[inner], kind, inner)
        return
    wrong = not isinstance(entry, fields) or entry in ("", [])
    if name == "publication_date" and not wrong:
        wrong = re.fullmatch(r"\d{4}-\d{2}-\d{2}", entry) is None
    if wrong or entry not in _CHOICES.get(name, (entry,)):
        raise AssertionError(f"{name} of a registry entry cannot be {entry!r:.60}")


@pytest.fixture
def entry(ledger: Ledger) -> dict[str, Any]:
    ledger.analyst("events", "ann").reserve({"select": 4})
    return registry_entry(ledger.reader(), "events")


def test_every_field_is_there_and_one_of_its_choices(entry: dict[str, Any]) -> None:
    check_entry(entry)


def test_it_says_what_the_statement_says(ledger: Ledger, entry: dict[str, Any]) -> None:
    said = statement(ledger.reader(), "events")
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == said["unit_of_privacy"] == "member"
    whole = said["lifetime"][0]
    assert loss["privacy_parameters"] == {"epsilon": whole["epsilon"], "delta": whole["delta"]}
    assert "is right at most" in loss["privacy_parameters_details"]
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert entry["deployment"]["basic"]["data_curators"] == [said["owner"]]
    assert "br:0.1" in entry["deployment"]["implementation"]["mechanisms"]
    assert entry["deployment"]["basic"]["intended_use"] == TO_DO


def test_yaml_reads_back(entry: dict[str, Any]) -> None:
    assert yaml.safe_load(as_yaml(entry)) == entry


@pytest.mark.parametrize(
    "text", ["yes", "null", "a: b", "- x", '"', "'", "\\", "2026-01-01", "#", "é ∑ 😀", "1e3", "{}"]
)
def test_names_stay_names(entry: dict[str, Any], text: str) -> None:
    entry["deployment"]["basic"]["name"] = text
    assert yaml.safe_load(as_yaml(entry)) == entry


def test_no_control_characters(entry: dict[str, Any]) -> None:
    entry["deployment"]["basic"]["name"] = "a\u2028b\x85c\x1b[31m\x7f"
    read = yaml.safe_load(as_yaml(entry))
    assert read["deployment"]["basic"]["name"] == "a\ufffdb\ufffdc\ufffd[31m\ufffd"


def test_what_is_not_an_entry(entry: dict[str, Any]) -> None:
    basic = entry["deployment"]["basic"]
    for wrong in (
        {**entry, "surprise": 1},
        {**entry, "tier": 0},
        {**entry, "status": "Approved"},
        {name: value for name, value in entry.items() if name != "status"},
        {**entry, "deployment": {**entry["deployment"], "basic": {**basic, "name": ""}}},
        {**entry, "deployment": {**entry["deployment"], "basic": {**basic, "name": 3}}},
        {
            **entry,
            "deployment": {
                **entry["deployment"],
                "basic": {**basic, "publication_date": "1/1/2026"},
            },
        },
    ):
        with pytest.raises(AssertionError):
            check_entry(wrong)


def test_the_fields_of_the_registry() -> None:
    """As in its schema: groups of the deployment, and the parameters that this kind has."""
    assert list(FIELDS) == ["url_slug", "status", "tier", "deployment"]
    assert list(FIELDS["deployment"]) == [
        *("basic", "dp_variant", "privacy_loss", "deployment_model", "accounting"),
        *("implementation", "administrative"),
    ]
    loss = FIELDS["deployment"]["privacy_loss"]
    assert list(loss["privacy_parameters"]) == ["epsilon", "delta"]


def test_a_dataset_without_accounts(ledger: Ledger) -> None:
    """Nothing is released, and that is what it says."""
    ledger.owner().add(Dataset("empty", owner="me", unit="person"))
    made = registry_entry(ledger.reader(), "empty")
    check_entry(made)
    parameters = made["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters == {"epsilon": 0.0, "delta": 0.0}
    assert made["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
