"""Columns that are computed: from other columns of the row, or from all rows of the unit.

`rules` says what each function gives and `columns` what an expression gives, from the schema alone;
`compile` makes the column. Every function is total: it gives a value or is missing, whatever the
rows hold, on every engine. `functions` are the aggregates per unit, for Python.
"""
