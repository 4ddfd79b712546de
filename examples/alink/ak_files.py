"""Alink's .ak files: AkSinkBatchOp and AkSourceBatchOp, a file, several, and a directory for each value; AkSinkStreamOp and
AkSourceStreamOp. No script, no TensorFlow."""

import os

import iris

from akrunner.alink import AkSinkBatchOp, AkSinkStreamOp, AkSourceBatchOp, AkSourceStreamOp, BatchOperator, StreamOperator


def main(folder="iris-ak"):
    os.makedirs(folder, exist_ok=True)
    flowers = iris.table()
    flowers.link(AkSinkBatchOp().setFilePath(f"{folder}/iris.ak").setOverwriteSink(True))
    flowers.link(AkSinkBatchOp(filePath=f"{folder}/several", numFiles=3, overwriteSink=True))
    flowers.link(AkSinkBatchOp(filePath=f"{folder}/kinds", partitionCols=["species"], overwriteSink=True))
    BatchOperator.execute()
    whole = AkSourceBatchOp().setFilePath(f"{folder}/iris.ak")
    assert whole.collect() == flowers.collect()
    assert len(AkSourceBatchOp(filePath=f"{folder}/several").collect()) == 150
    some = AkSourceBatchOp(filePath=f"{folder}/kinds", partitions="species <> 'setosa'")
    assert len(some.collect()) == 100 and "species" not in some.getColNames()

    AkSourceStreamOp(filePath=f"{folder}/iris.ak").where("petal_length > 5").link(
        AkSinkStreamOp(filePath=f"{folder}/large.ak", overwriteSink=True)
    )
    StreamOperator.execute()
    large = AkSourceBatchOp(filePath=f"{folder}/large.ak")
    print(large.getSchemaStr())
    return large.collect()


if __name__ == "__main__":
    main()
