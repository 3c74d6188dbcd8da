"""What can be read from a book: statement, lifetime guarantees, odometer, history, verification.

Reports change nothing. They see the ledger through a `Reader`.
"""
