"""`python -m akrunner`."""

from akrunner.cli.main import main

if __name__ == "__main__":
    main()
