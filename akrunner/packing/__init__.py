"""Packing: folders of files, lists of files, texts and tables -> a few large files of records, shuffled and split once.

::

    files   listing | listed -> Index (a row a file) -> ranks: split and order of each -> plan: shards -> pool: read, check -> shards
    rows    rows -> ranks -> buckets on disk (pass 1) -> each sorted (pass 2) -> shards

    OUT/.pack/0001/   plan.json, index.arrow, shards that are done     until all of them are
    OUT/              train/00000.tfrecord ..., labels.json, dataset.json (last: what it does not list is not there)
"""
