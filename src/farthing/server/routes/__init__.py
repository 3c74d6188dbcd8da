"""The HTTP routes, by whom they are for: analysts, owners, everybody.

`dependencies` is what a route asks for: the service, and a caller of the right type.
"""
