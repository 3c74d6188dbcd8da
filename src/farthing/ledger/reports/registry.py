"""An entry for the public registry of deployments of differential privacy, from a statement.

The registry (github.com/opendp/deployments-registry-data) keeps one YAML file for each deployment.
What the ledger knows is filled in. What it cannot know is marked `TO_DO` for the owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from farthing.errors import NotCertified
from farthing.ledger.entries.analyst import Charge
from farthing.ledger.reports.statement import FIXED, statement
from farthing.ledger.roles.reader import Reader
from farthing.numerics.rounding import shown_up
from farthing.wording import guess_words, plain

#: What the owner has to write.
TO_DO = "To be filled in by the owner."


def registry_entry(reader: Reader, dataset: str, *, delta: float = 1e-6) -> dict[str, Any]:
    """The entry as plain data; `as_yaml` writes it. The tests have its schema."""
    told = (fact.time for _, fact in reader.facts(dataset, Charge))
    return _entry(statement(reader, dataset, delta=delta), next(told, reader.now())[:10])


def _entry(said: Mapping[str, Any], first_release: str) -> dict[str, Any]:
    lifetime, unit = said["lifetime"][0], said["unit_of_privacy"]
    epsilon, delta = lifetime["epsilon"], lifetime["delta"]
    if epsilon is None:
        raise NotCertified(f"no epsilon is proved at delta = {said['delta']:g}; try a larger")
    right, rows = said["guess"]["right_at_most"], said["growing_rows"]
    meaning = [] if right is None else [guess_words(right, unit, "everything ever released")]
    theorems = {claim["theorem"] for one in said["accounts"] for claim in one["claims"]}
    sold = [item for one in said["accounts"] for item in one.get("per_query", ())]
    analysts = [
        f"{row['analyst']}: epsilon at most {shown_up(row['epsilon'])} at delta = {row['delta']}."
        for row in said["per_analyst"]
    ]
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "_", said["dataset"].lower()).strip("_") or "data",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": said["dataset"],
                "data_curators": [said["owner"]],
                "intended_use": TO_DO,
                "data_product_type": "Interactive API",
                "data_product_region": TO_DO,
                "description": TO_DO,
                "publication_date": first_release,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if delta == 0 else "Approximate DP",
                "data_domain": "Tables with the declared columns, of any size.",
                "unprotected_quantities": "What the owner declared: columns, limits, prices.",
            },
            "privacy_loss": {
                "privacy_unit": unit,
                "privacy_unit_details": f"Neighbouring: {said['neighbouring_relation']}. "
                + rows["says"],
                "privacy_parameters": {"epsilon": epsilon, "delta": delta},
                "privacy_parameters_details": " ".join(
                    [f"Over the lifetime of the data, if {lifetime['if']}.", *meaning]
                ),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": said["trust_model"][0],
                "actors": " ".join(said["trust_model"]),
                "release_type": "Many releases",
                "release_type_details": "A fixed budget for all releases; nothing runs beyond it.",
                "data_source_type": "Static" if rows["case"] == FIXED else "Dynamic",
                "data_source_type_details": rows["case"],
                "access_type": "Interactive",
                "access_type_details": " ".join(
                    ["Analysts may collude: the parameters are for all of them.", *analysts]
                ),
            },
            "accounting": {
                "post_processing": TO_DO,
                "composition": "; ".join(sorted(theorems)) or "nothing is released yet",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": TO_DO,
                "mechanisms": " ".join(
                    [
                        f"farthing {said['farthing_version']}.",
                        *dict.fromkeys(f"{item['item']}: {item['guarantee']}." for item in sold),
                        *said["numerical_measures"],
                    ]
                ),
                "justification": TO_DO,
            },
            "administrative": {
                "sources": TO_DO,
                "notes": "Certificates: " + ", ".join(one["digest"] for one in said["accounts"]),
                "registry_authors": [said["owner"]],
            },
        },
    }


def as_yaml(entry: Mapping[str, Any], indent: str = "") -> str:
    """The entry as YAML: texts in quotes, as JSON writes them, which YAML reads the same."""
    lines = []
    for name, value in entry.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}:\n{as_yaml(value, indent + '  ')}")
        elif isinstance(value, list):
            listed = (f"{indent}  - {_scalar(one)}\n" for one in value)
            lines.append(f"{indent}{name}:\n{''.join(listed)}")
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}\n")
    return "".join(lines)


def _scalar(value: object) -> str:
    """YAML 1.1 takes 1e-06 for text, so numbers have a decimal point."""
    text = json.dumps(plain(value) if isinstance(value, str) else value, ensure_ascii=False)
    exponent = isinstance(value, float) and "e" in text and "." not in text
    return text.replace("e", ".0e") if exponent else text
