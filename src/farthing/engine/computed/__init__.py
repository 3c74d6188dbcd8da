"""Columns that are computed: from other columns of the row, or from all rows of the unit.

`columns` says what an expression gives, from the schema alone; `compile` makes the column.
Every function is total: it gives a value or is missing, whatever the rows hold, on every engine.
"""
