"""What nobody needs to run the system: tools to examine it, and to show it.

`audit` attacks mechanisms, `games` plays the adversaries that attain the bounds, `finite` computes
with small interactive systems exactly, `figures` draws, `demo` shows everything on `example_data`.
"""
