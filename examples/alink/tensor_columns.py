"""Tensors and vectors of text and of lists: ToTensorBatchOp, VectorToTensorBatchOp, TensorToVectorBatchOp; ToTensorStreamOp,
VectorToTensorStreamOp, TensorToVectorStreamOp; the stages Select, ToTensor, VectorToTensor and TensorToVector of a pipeline. No script."""

from akrunner.alink import (
    MemSourceBatchOp,
    MemSourceStreamOp,
    Pipeline,
    Select,
    StreamOperator,
    TensorToVector,
    TensorToVectorBatchOp,
    TensorToVectorStreamOp,
    ToTensor,
    ToTensorBatchOp,
    ToTensorStreamOp,
    VectorToTensor,
    VectorToTensorBatchOp,
    VectorToTensorStreamOp,
)

ROWS = [(1, "FLOAT#2,2#1.0 2.0 3.0 4.0 ", "0.5 1.5"), (2, "FLOAT#2,2#5.0 6.0 7.0 8.0 ", "$2$1:2.5")]
SCHEMA = "id bigint, image string, vec string"


def main():
    table = MemSourceBatchOp(ROWS, SCHEMA)
    images = ToTensorBatchOp().setSelectedCol("image").setTensorDataType("FLOAT").setTensorShape([2, 2]).linkFrom(table)
    vectors = VectorToTensorBatchOp().setSelectedCol("vec").setOutputCol("tensor").setReservedCols(["id"]).linkFrom(table)
    assert vectors.collect() == [(1, [0.5, 1.5]), (2, [0.0, 2.5])]
    sums = TensorToVectorBatchOp(selectedCol="image", convertMethod="SUM", outputCol="sums").linkFrom(images)
    assert [row[3] for row in sums.collect()] == [[4.0, 6.0], [12.0, 14.0]]

    stages = [
        Select(clause="id, image, vec"),
        ToTensor(selectedCol="image", tensorShape=[2, 2]),
        VectorToTensor(selectedCol="vec"),
        TensorToVector(selectedCol="image", convertMethod="MEAN"),
    ]
    model = Pipeline(*stages).fit(table)
    means = model.transform(table)
    assert [row[1] for row in means.collect()] == [[2.0, 3.0], [6.0, 7.0]]

    stream = ToTensorStreamOp(selectedCol="image", tensorShape=[4]).linkFrom(MemSourceStreamOp(ROWS, SCHEMA))
    stream = VectorToTensorStreamOp(selectedCol="vec", tensorDataType="FLOAT").linkFrom(stream)
    TensorToVectorStreamOp(selectedCol="image", convertMethod="MAX").linkFrom(stream).print()
    StreamOperator.execute()
    return means.collect()


if __name__ == "__main__":
    main()
