"""Rows one by one, in a coding of the script's own."""

from flink_ml_framework.java_file import BytesRecorder, JavaFile, JsonRecorder

__all__ = ["BytesRecorder", "JavaFile", "JsonRecorder"]
