"""How a ledger of an older schema becomes a newer one; run by `farthing.ledger.upgrade`."""
