"""DeepAR forecasts, which are not in akrunner: importing this module raises an ImportError."""

from akdl import absent

absent.refuse(__name__, "DeepAR forecasts")
