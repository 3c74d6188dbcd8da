"""The same session over HTTP: `farthing.connect("https://…", token=…)`."""

from farthing.optional import required

required("httpx")  # named first: what else is missing comes with the same extra

from farthing.client.connect import connect  # noqa: E402 # see above
from farthing.client.wire import ServiceRefused  # noqa: E402 # see above

__all__ = ["ServiceRefused", "connect"]
