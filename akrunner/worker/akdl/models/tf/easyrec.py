"""Models of EasyRec: not here."""

from akdl import absent

absent.refuse(__name__, "models of EasyRec")
