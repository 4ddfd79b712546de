"""Temporal Fusion Transformers: not here."""

from akdl import absent

absent.refuse(__name__, "Temporal Fusion Transformers")
