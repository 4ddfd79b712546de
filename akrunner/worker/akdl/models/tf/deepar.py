"""DeepAR forecasts: not here."""

from akdl import absent

absent.refuse(__name__, "DeepAR forecasts")
