"""Theorems that bound a list without a grid: closed forms, Gaussian noise, moments.

`bound` says what each of them answers; `moment_witness` shows how close moments come.
"""
