"""Selections: one or several candidates, chosen by their scores.

`draws` is the exponential mechanism drawn exactly; the other modules say what is scored.
"""
