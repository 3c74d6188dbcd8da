"""Tools to examine the system and to show it; none of them is needed to run it.

`audit` attacks mechanisms, `games` plays the adversaries that attain the bounds, `finite` computes
with small interactive systems exactly, `figures` draws; `example_data` is what things are tried on.
"""
