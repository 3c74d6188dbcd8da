"""Plans and answers for people: in a terminal, in a notebook, as tables of other libraries.

Nothing here knows what a query is: everything is shown from a `Sheet` or from lines of text.
"""
