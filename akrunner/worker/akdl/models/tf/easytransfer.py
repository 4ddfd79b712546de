"""BERT models of EasyTransfer: not here."""

from akdl import absent

absent.refuse(__name__, "BERT models of EasyTransfer")
