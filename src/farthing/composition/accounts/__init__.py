"""Budgets that are spent as you go.

`accountant` decides whether the next mechanism fits, by the rules in `filters`;
`account_profiles` states what accounts have revealed so far.
"""
