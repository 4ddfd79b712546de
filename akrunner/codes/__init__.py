"""The short code of each message: `AK301` stands for the family of messages that have one cause and one cure.

::

    catalogue.toml   the families, written by hand: code, classes, title, cause, cure, and which messages are theirs
    index.json       the messages of the source, each with its code (scripts/gen-codes)
    code_of          the code of an exception, by its class and its words, so that it can also be told of one that comes
                     from another process or from the record of a run

Neither file is read before an error is shown, and the catalogue only to explain one.
"""

from akrunner.codes.matching import code_of, templates, with_code
from akrunner.codes.noting import PAGE, Lookup, link

__all__ = ["PAGE", "Lookup", "code_of", "link", "templates", "with_code"]
