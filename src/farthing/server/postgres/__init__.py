"""The PostgreSQL protocol, version 3, for SQL clients: `farthing serve --postgres HOST:PORT`.

`messages` are bytes, `conversing` is the state machine of a connection, `catalogue` is what clients
look up about tables, `listening` accepts connections. Every question goes to the HTTP routes with
the token that the client gave as its password, so that nothing is allowed here that is not there.
"""
