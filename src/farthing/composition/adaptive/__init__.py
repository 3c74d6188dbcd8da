"""The adaptive optimum: operators on profiles, applied on a grid and refined (`optimum`).

`lattice` adds up many fixed losses; `grid_choice` counts the cost, also of an order left open.
"""
