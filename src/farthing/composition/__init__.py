"""What mechanisms prove together: `compose` takes the tightest bound that applies to a list.

`bounds` are theorems without a grid, `adaptive` the optimum on a grid, `tariffs` price lists that
are proved in advance, `accounts` budgets that are spent as you go.
"""
