"""The adaptive optimum: operators on profiles, applied on a grid and refined (`optimum`).

`lattice` and `fixed_sums` add up many fixed losses; `any_order` leaves the order open.
"""
