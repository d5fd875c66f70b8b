"""``python -m rewind`` is the ``rewind`` command."""

from rewind.cli.main import main

if __name__ == "__main__":
    main()
