"""Streams without any script: CsvSourceStreamOp, RandomTableSourceStreamOp, SQL over each batch of rows, CsvSinkStreamOp."""

import iris

from akrunner.alink import CsvSinkStreamOp, RandomTableSourceStreamOp, StreamOperator


def main(output="streams.csv"):
    flowers = iris.stream().where("species = 'setosa'").select("id, petal_length * petal_width AS area")
    noise = RandomTableSourceStreamOp(maxRows=100, numCols=1, idCol="id", seed=1).filter("col0 > 0.5").as_("id, area")
    flowers.unionAll(noise).link(CsvSinkStreamOp(filePath=output, overwriteSink=True))
    StreamOperator.execute()


if __name__ == "__main__":
    main()
    print("streams.csv is written")
