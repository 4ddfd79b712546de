"""TensorFlow2StreamOp: a script of TensorFlow 2 over rows as they come."""

import pathlib

from akrunner.alink import CsvSinkStreamOp, MemSourceStreamOp, StreamOperator, TensorFlow2StreamOp

SCRIPT = str(pathlib.Path(__file__).parent / "scripts" / "norm.py")


def main(output="norms.csv"):
    rows = MemSourceStreamOp([(0, 3.0, 4.0), (1, 6.0, 8.0), (2, 0.0, 0.0)], "id bigint, x double, y double")
    # any TensorFlow 2; without it 2.3, as in Alink
    norm = TensorFlow2StreamOp(mainScriptFile=SCRIPT, outputSchemaStr="id bigint, norm double", pythonEnv="tf2")
    far = rows.link(norm).where("norm > 1")
    far.print()
    far.link(CsvSinkStreamOp().setFilePath(output).setOverwriteSink(True))
    StreamOperator.execute()


if __name__ == "__main__":
    main()
