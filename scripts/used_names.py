"""What vulture takes for used (`scripts/lint`): names that a library asks for, or a user's script.

They are not `ignore_names` of its settings: it takes those for patterns, and compares each name that is defined with each of them, which is a third of
all that it does.
"""

# ruff: noqa: F822, RUF022
# fmt: off
__all__ = [
    "FlinkSourceBatchOp", "RUN_HELP", "STREAM_HELP", "TRAIN_HELP", "TableStreamOp", "TextTableReader", "__contains__", "__dir__", "__loader__",
    "__signature__", "_create_connection", "_made_of", "_render_traceback_", "_repr_html_", "add_summary", "allow_smaller_final_batch", "auto_shard",
    "autograph_info__", "bad_rows_file", "blocksize", "collectLocalPredictor", "compression_type", "configFileName", "dataset_fn", "daemon_threads",
    "defs", "do_GET", "do_POST", "downloadPluginSafely", "encode_csv", "end_pos", "example_input_dataset", "experimental_deterministic",
    "export_estimator_cluster", "file_names", "flinkHome", "fromTable", "from_java", "fullname", "funcName", "getColTypes", "getFlinkVersion",
    "getOutputSchemaStr", "getPluginDir", "getPluginDownloader", "getPluginUrl", "get_failed_num", "get_gpus", "get_index", "get_property",
    "get_role_name", "get_role_parallelism_map", "get_row_writer_to_flink", "host_blocked_seconds", "http_open", "https_open", "input_dataset",
    "input_producer", "isAutoPluginDownload", "isPrintProcessInfo", "jobName", "lazyCollectToDataframe", "linkTo", "listAvailablePluginVersions",
    "loadJarsPluginConfig", "loadResourcePluginConfig", "log_message", "maxLimit", "mpu", "num_clients", "num_parallel_reads", "num_records_produced",
    "num_threads", "num_tickets", "num_work_units_completed", "offset_pos", "on_epoch_begin", "on_timer", "on_train_batch_end", "output_file",
    "output_writer_op", "pluginFiles", "pluginVersion", "protobuf", "reader_ref", "refreshInterval", "response_class", "rich_help_panel", "sampleWithSize",
    "setAutoPluginDownload", "setPluginDir", "setPluginUrl", "setPrintProcessInfo", "supports_serialize", "task_bytes_in", "task_rows_out", "tf_context",
    "upgrade", "upgradePlugin", "userScript", "visit_AnnAssign", "whence", "worker_index",
]
