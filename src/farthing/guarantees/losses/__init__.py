"""The privacy loss of each kind of guarantee, in one direction of neighbours.

One file per worst case; `base` is their interface, `registry` says which one a kind has.
"""
