"""Alink's own example: a `DNNClassifier`; the model comes back as rows."""

from akdl.models.tf.dnn import dnn_batch


def main(task_config):
    dnn_batch.main(task_config)
