"""LSTNet forecasts: not here."""

from akdl import absent

absent.refuse(__name__, "LSTNet forecasts")
