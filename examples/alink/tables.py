"""Tables without any script: sources, SQL, sinks."""

import pathlib

import iris

from akrunner.alink import (
    BatchOperator,
    CsvSinkBatchOp,
    ParquetSinkBatchOp,
    ParquetSourceBatchOp,
    TableSourceBatchOp,
    TextSourceBatchOp,
    TFRecordSinkBatchOp,
    TFRecordSourceBatchOp,
)


def main(folder="tables"):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    flowers = iris.table()
    means = flowers.groupBy("species", "species, COUNT(*) AS n, AVG(petal_length) AS petal").orderBy("petal", order="desc")
    means.lazyPrint(title="means")
    large = flowers.where("petal_length > 5").select(["id", "species", "petal_length"])
    large.link(CsvSinkBatchOp(filePath=str(folder / "large.csv"), overwriteSink=True))
    large.link(ParquetSinkBatchOp(filePath=str(folder / "large.parquet"), overwriteSink=True))
    large.link(TFRecordSinkBatchOp(filePath=str(folder / "large.tfrecord"), overwriteSink=True))
    BatchOperator.execute()

    again = ParquetSourceBatchOp(filePath=str(folder / "large.parquet"))
    examples = TFRecordSourceBatchOp(
        filePath=str(folder / "large.tfrecord"), schemaStr="id bigint, species string, petal_length float"
    )
    lines = TextSourceBatchOp(filePath=str(folder / "large.csv"))
    names = TableSourceBatchOp({"species": iris.SPECIES, "letter": ["s", "c", "v"]})
    lettered = again.join(names, "a.species = b.species", "a.id, b.letter").orderBy("id").firstN(3)
    joined = again.join(examples.as_("number, name, length"), "a.id = b.number", "a.id, b.name")
    lettered.print()
    return means.collect(), joined.collectToTable(), lines.collect()


if __name__ == "__main__":
    main()
