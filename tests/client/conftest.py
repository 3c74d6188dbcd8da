"""The service of tests/server, for whoever connects to it."""

import pytest

from tests.server.conftest import certificate, deploy, deployed_apart  # noqa: F401 # fixtures
from tests.server.deployment import Deployment


@pytest.fixture(scope="module")
def deployed(deployed_apart: Deployment) -> Deployment:  # noqa: F811 # a fixture
    """One whose budget moves with nobody else."""
    return deployed_apart
