"""What tables and streams do by themselves: SelectBatchOp, WhereBatchOp, FilterBatchOp, AsBatchOp, DistinctBatchOp, FirstNBatchOp,
UnionAllBatchOp, ShuffleBatchOp, SampleBatchOp, SplitBatchOp, TypeConvertBatchOp; SelectStreamOp, WhereStreamOp, FilterStreamOp,
AsStreamOp, SampleStreamOp, SplitStreamOp, TypeConvertStreamOp. No script, no TensorFlow."""

import iris

from akrunner.alink import (
    AsBatchOp,
    AsStreamOp,
    CsvSinkStreamOp,
    DistinctBatchOp,
    FilterBatchOp,
    FilterStreamOp,
    FirstNBatchOp,
    SampleBatchOp,
    SampleStreamOp,
    SelectBatchOp,
    SelectStreamOp,
    ShuffleBatchOp,
    SplitBatchOp,
    SplitStreamOp,
    StreamOperator,
    TypeConvertBatchOp,
    TypeConvertStreamOp,
    UnionAllBatchOp,
    WhereBatchOp,
    WhereStreamOp,
)


def batch():
    flowers = iris.table()
    areas = SelectBatchOp(clause="species, petal_length * petal_width AS area").linkFrom(flowers)
    named = AsBatchOp(clause="kind, petal").linkFrom(areas)
    large = WhereBatchOp(clause="petal > 10").linkFrom(named)
    small = FilterBatchOp(clause="petal < 1").linkFrom(named)
    both = UnionAllBatchOp().linkFrom(large, small)
    kinds = DistinctBatchOp().linkFrom(both.select("kind"))
    assert sorted(kinds.collect()) == [("setosa",), ("virginica",)]
    split = SplitBatchOp().setFraction(0.8).linkFrom(ShuffleBatchOp().linkFrom(flowers))
    train, test = split.collect(), split.getSideOutput(0).collect()
    assert len(train) == 120 and len(test) == 30 and not set(train) & set(test)
    assert 30 < len(SampleBatchOp(ratio=0.3).linkFrom(flowers).collect()) < 60
    whole = TypeConvertBatchOp().setSelectedCols(["petal"]).setTargetType("INT").linkFrom(FirstNBatchOp(size=2).linkFrom(large))
    assert whole.getSchemaStr() == "kind VARCHAR, petal INT"
    whole.print()
    return whole.collect()


def stream(train="train.csv", test="test.csv"):
    areas = SelectStreamOp(clause="species, petal_length * petal_width AS area").linkFrom(iris.stream())
    large = WhereStreamOp(clause="petal > 0").linkFrom(AsStreamOp(clause="kind, petal").linkFrom(areas))
    text = TypeConvertStreamOp(targetType="STRING").linkFrom(FilterStreamOp(clause="kind <> 'setosa'").linkFrom(large))
    split = SplitStreamOp(fraction=0.7).linkFrom(text)
    split.link(CsvSinkStreamOp(filePath=train, overwriteSink=True))
    SampleStreamOp(ratio=0.5).linkFrom(split.getSideOutput(0)).link(CsvSinkStreamOp(filePath=test, overwriteSink=True))
    StreamOperator.execute()


if __name__ == "__main__":
    batch()
    stream()
    print("train.csv and test.csv are written")
