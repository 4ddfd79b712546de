"""The iris example from Python: two workers train one model together and write a prediction for every flower."""

import pathlib

import akrunner

HERE = pathlib.Path(__file__).parent


def main() -> None:
    result = akrunner.run(
        HERE / "iris.py",
        HERE / "iris.csv",
        user_params={"batch_size": 16, "epochs": 30},
        output_schema="id bigint, species string, predicted string, p double",
        num_workers=2,
        keras="legacy",  # Keras 3's fit cannot train over several workers
    )
    table = result.to_pandas().sort_values("id")
    print(f"accuracy: {(table.species == table.predicted).mean():.3f} over {len(table)} rows")
    print(table.head().to_string(index=False))
    stats = result.stats
    print(f"{stats.seconds:.1f} s, rows of each worker: {list(stats.shares)}")


if __name__ == "__main__":
    main()
