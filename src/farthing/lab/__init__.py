"""Tools to examine the system and to show it; none of them is needed to run it.

`audit` attacks mechanisms, `figures` draws, `example_data` is what things are tried on.
"""
