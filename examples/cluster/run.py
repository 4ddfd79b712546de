"""The cluster examples: `python run.py [mirrored | custom_loop | parameter_server | estimator [PYTHON_ENV]]`."""

import pathlib
import sys

import akrunner

HERE = pathlib.Path(__file__).parent
IRIS = HERE.parent / "iris" / "iris.csv"
SHARED = "rows bigint, correct bigint, variables double"


def mirrored(**options):
    """Keras `fit`; both workers have the same variables afterwards."""
    return akrunner.run(HERE / "mirrored.py", IRIS, num_workers=2, keras="legacy", output_schema=SHARED, timeout=300, **options)


def custom_loop(**options):
    """A loop of one's own; the same."""
    return akrunner.run(HERE / "custom_loop.py", IRIS, num_workers=2, output_schema=SHARED, timeout=300, **options)


def parameter_server(**options):
    """Two workers, a coordinating chief, a parameter server."""
    return akrunner.run(
        HERE / "parameter_server.py",
        IRIS,
        num_workers=2,
        num_ps=1,
        coordinator=True,
        output_schema="rows bigint, different_rows bigint, loss double, variables double",
        timeout=300,
        **options,
    )


def estimator(python_env="tf1.15", num_ps=1, **options):
    """Estimators went with TensorFlow 2.16: an older TensorFlow runs this one."""
    strategy = {} if num_ps else {"strategy": "all_reduce"}
    return akrunner.run(
        HERE / "estimator.py",
        IRIS,
        num_workers=2,
        num_ps=num_ps,
        evaluator=True,
        python_env=python_env,
        user_files=[IRIS],
        user_params=strategy,
        output_schema="step bigint, variables double",
        timeout=300,
        **options,
    )


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "mirrored"
    examples = {example.__name__: example for example in (mirrored, custom_loop, parameter_server, estimator)}
    if name not in examples:
        sys.exit(f"usage: python run.py [{' | '.join(examples)} [PYTHON_ENV]]")
    result = examples[name](*sys.argv[2:])
    print(result.to_pandas().to_string(index=False))
    if result.stats.reports:
        print(result.stats.report_table.to_pandas().tail(3).to_string(index=False))
    for warning in result.stats.warnings:
        print("warning:", warning)
    print(f"{result.stats.seconds:.1f} s, rows of each worker: {list(result.stats.shares)}")


if __name__ == "__main__":
    main()
