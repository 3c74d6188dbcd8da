"""The HTTP service: the boundary between the data and people who may only ask questions."""

try:
    import fastapi  # noqa: F401 # only to say clearly what is missing
except ImportError:
    from farthing.errors import Unsupported
    from farthing.optional import installing

    raise Unsupported(f"the service needs FastAPI; {installing('service')}") from None
