"""The names of Alink's `akdl` package that users' scripts import, backed by akrunner's worker.

A script whose user files contain the real package gets that one.
"""
