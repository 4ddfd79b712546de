"""As `dl_on_flink_framework`, what is of TensorFlow."""
