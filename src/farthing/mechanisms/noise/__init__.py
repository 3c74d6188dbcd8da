"""Noise on whole numbers, drawn exactly from the bits of the operating system.

`exact_sampling` has the draws that all of it is made of; `discrete` says which noise a guarantee
needs.
"""
