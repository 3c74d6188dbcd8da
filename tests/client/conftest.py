"""The service of tests/server, for whoever connects to it."""

from tests.server.conftest import certificate, deploy, deployed  # noqa: F401 # fixtures
