"""Selections: one or several candidates, chosen by their scores.

`exponential` draws the exponential mechanism exactly; the other modules say what is scored.
"""
