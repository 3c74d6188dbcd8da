"""Captions, plans and answers for people: in a terminal, in a notebook, as tables.

Nothing here knows a kind of question: captions are made from `Words`, answers from a `Sheet`.
"""
