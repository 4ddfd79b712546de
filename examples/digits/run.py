"""The digits example from Python: images in a Parquet column, a Keras CNN, probabilities back as an array column."""

import pathlib

import akrunner

HERE = pathlib.Path(__file__).parent


def main() -> None:
    result = akrunner.run(
        HERE / "digits.py",
        HERE / "digits.parquet",
        user_params={"epochs": 8},
        split={"train": 0.8, "test": 0.2},
        output_schema="id bigint, label bigint, predicted bigint, p FLOAT_TENSOR",
    )
    table = result.to_pandas()
    print(f"accuracy: {(table.label == table.predicted).mean():.3f} over {len(table)} rows it has not seen")
    print(table.head().to_string(index=False, max_colwidth=40))


if __name__ == "__main__":
    main()
