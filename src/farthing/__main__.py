"""`python -m farthing`."""

from farthing.cli.main import run

if __name__ == "__main__":
    run()
