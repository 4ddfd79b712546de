"""TensorFlow2BatchOp: a script of TensorFlow 2 over a table."""

import pathlib

from akrunner.alink import MemSourceBatchOp, TensorFlow2BatchOp

SCRIPT = str(pathlib.Path(__file__).parent / "scripts" / "norm.py")


def main():
    table = MemSourceBatchOp([(0, 3.0, 4.0), (1, 6.0, 8.0), (2, 0.0, 0.0)], "id bigint, x double, y double")
    norm = (
        TensorFlow2BatchOp()
        .setMainScriptFile(SCRIPT)
        .setOutputSchemaStr("id bigint, norm double")
        .setNumWorkers(2)
        .setNumPSs(0)
        # any TensorFlow 2; without it 2.3, as in Alink
        .setPythonEnv("tf2")
    )
    return table.link(norm).orderBy("id").print()


if __name__ == "__main__":
    main()
