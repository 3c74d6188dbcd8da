"""The same session over HTTP: `farthing.connect("https://…", token=…)`."""

from farthing.client.errors import ServiceRefused
from farthing.client.session import RemoteSession, connect

__all__ = ["RemoteSession", "ServiceRefused", "connect"]
