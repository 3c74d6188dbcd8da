"""Budgets that are spent as you go: the accountant, and what an account has revealed so far.

`quick_reading` answers at once by moments, `account_profiles` by whole profiles.
"""
