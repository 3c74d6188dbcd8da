"""Budgets that are spent as you go.

`accountant` decides whether the next mechanism fits, by the rule in `renyi_filter`;
`account_profiles` states what accounts have revealed so far.
"""
