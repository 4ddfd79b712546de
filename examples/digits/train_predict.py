"""Train a model on the digits, then run it over a table: no TensorFlow in this process, neither time."""

import pathlib
import sys

import akrunner

HERE = pathlib.Path(__file__).parent
DIGITS = HERE / "digits.parquet"


def main() -> None:
    # one row in five is kept from training
    trained = akrunner.train(
        HERE / "train.py",
        DIGITS,
        select="SELECT * FROM input WHERE id % 5 > 0",
        user_params={"epochs": 8},
        data_format="columns",
    )
    assert trained.model is not None
    if len(sys.argv) > 1:
        print("model:", trained.model.save(sys.argv[1], overwrite=True))
    result = akrunner.predict(
        trained.model,
        DIGITS,
        select="SELECT * FROM input WHERE id % 5 = 0",
        output_schema="digit bigint, p FLOAT_TENSOR",
        reserved_cols=["id", "label"],
        num_workers=2,
    )
    table = result.to_pandas()
    print(f"accuracy: {(table.label == table.digit).mean():.3f} over {len(table)} rows the model had not seen")
    print(table.head().to_string(index=False, max_colwidth=40))


if __name__ == "__main__":
    main()
