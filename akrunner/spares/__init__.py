"""Worker processes that wait for a job with TensorFlow imported: kept by this process (`pool`), forked from one that has imported it.

Host's side; `akrunner.worker.spare` and `akrunner.worker.template` are the other. A job takes a spare that is what its worker process would be (`wanted`), and starts cold
where there is none; a spare is used once.
"""
