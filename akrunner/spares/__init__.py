"""Worker processes that wait for a job with TensorFlow imported: kept by this process (`pool`).

Host's side; `akrunner.worker.spare` is the other. A job takes a spare that is what its worker process would be (`wanted`), and starts cold
where there is none; a spare is used once.
"""
