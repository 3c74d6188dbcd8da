"""What composition knows of a guarantee: its privacy loss in one direction of neighbours.

One file per worst case; `base` says what a loss can be asked, `registry` which one a kind has.
"""
