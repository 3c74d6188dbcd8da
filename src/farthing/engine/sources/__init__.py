"""Where rows live. `base` is what every engine has in common; `duckdb`, `postgres` and `spark` are
the engines; `opening` finds the one for an address. A package of one's own can add another:
`conformance` checks that it limits units and reads values as the others do.
"""
