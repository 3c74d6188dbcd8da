"""Everything that writes into a book, each in one transaction.

The files have the names of those in `entries/`: an entry is defined there and written here.
"""
