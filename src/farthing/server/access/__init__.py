"""Authentication: tokens, callers, an OpenID provider, and the database that keeps them."""
