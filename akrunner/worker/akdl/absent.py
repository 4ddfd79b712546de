"""What Alink's `akdl` has and this one has not: an import says so, and what to ship instead."""

_SHIP = (
    "ship Alink's own akdl, the directory or a zip of it, in the user files (user_files=, --user-files; userFiles of an operator), with "
    "what it needs in the environment: it is taken in place of this one"
)


def refuse(name, what, instead=_SHIP):
    """Args: name: of the module; what: it is. Raises: ImportError, always."""
    raise ImportError("Alink's %s (%s) is not in akrunner: %s" % (name, what, instead), name=name)
