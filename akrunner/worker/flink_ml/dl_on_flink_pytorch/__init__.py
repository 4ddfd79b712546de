"""Deep Learning on Flink for PyTorch, which is not in akrunner: importing this package raises an ImportError."""

raise ImportError(
    "dl_on_flink_pytorch is not in akrunner: a script has its rows by `from akrunner.worker import current; "
    "current().batches(32)`, as numpy arrays that torch.from_numpy takes, and its rank by current().task_index"
)
