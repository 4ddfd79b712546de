"""Side inputs: further tables an operator is linked from reach the script as files."""

import iris

from akrunner.alink import MemSourceBatchOp, TensorFlow2BatchOp


def main():
    lines = MemSourceBatchOp([("the quick brown fox",), ("a lazy dog",), ("",)], "text string")
    words = MemSourceBatchOp([("quick",), ("fox",), ("dog",)], "word string")
    count = TensorFlow2BatchOp(
        mainScriptFile=str(iris.HERE / "scripts" / "count_words.py"),
        outputSchemaStr="text string, known bigint",
        pythonEnv="tf2",
    )
    return count.linkFrom(lines, words).print()


if __name__ == "__main__":
    main()
