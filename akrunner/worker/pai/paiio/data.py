"""Datasets; TensorFlow is imported when one is asked for."""


def __getattr__(name):
    if name == "TableRecordDataset":
        from akrunner.worker.tables.dataset import TableRecordDataset

        return TableRecordDataset
    raise AttributeError("module 'paiio.data' has no attribute %r" % name)
