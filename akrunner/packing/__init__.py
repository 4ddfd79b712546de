"""Packing: turns folders of files, lists of files, texts and tables into a few large files of records, shuffled and split once.

A large file is called a shard; what one run adds to the output is called a part.

::

    files   directory or list -> Index (a row for each file) -> ranks: split and order of each -> plan: which shards
            plan -> pool: read and check the files -> shards
    rows    rows -> ranks -> buckets on disk (pass 1) -> each bucket sorted (pass 2) -> shards

    OUT/.pack/0001/   plan.json, index.arrow and finished shards       until all shards of the part are finished
    OUT/              train/00000.tfrecord ..., labels.json, dataset.json (written last: a file it does not list does not count)
"""
