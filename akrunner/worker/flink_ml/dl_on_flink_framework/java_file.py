"""Reading and writing rows one by one, in an encoding of the script's own."""

from flink_ml_framework.java_file import BytesRecorder, JavaFile, JsonRecorder

__all__ = ["BytesRecorder", "JavaFile", "JsonRecorder"]
