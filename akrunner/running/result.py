"""What a job gives back when it has succeeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from akrunner.engines.base import Stats, TaskResult
from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.io.frames import to_pandas
from akrunner.model import Model

if TYPE_CHECKING:
    import pandas


#: columns that are named of a result
_NAMED = 8


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: what the scripts wrote, the chief's rows first; None when it went to a file, or nothing was written and there is no output schema.
        output: the file it (of a train job: the model) went to, if it did.
        tasks: what became of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound, if it is known.
        work_dir: the directory of the job, None unless it was kept (`work_dir=`, `debug=True`).
        model: what a train job left, None for others.
    """

    table: pa.Table | None
    output: str | None
    tasks: tuple[TaskResult, ...]
    stats: Stats
    work_dir: str | None
    model: Model | None = None

    def __repr__(self) -> str:
        # what a notebook shows of a cell's last line
        said = [f"{self.stats.rows_out:,} row{'' if self.stats.rows_out == 1 else 's'}"]
        if self.table is not None:
            names = self.table.column_names
            said[0] += f" of {', '.join(names[:_NAMED])}" + (
                f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            )
        said[0] += f" in {self.stats.seconds:.1f} s"
        where = (
            ("output", self.output),
            ("work_dir", self.work_dir),
            ("model", self.model.path if self.model is not None else None),
        )
        said += [f"{name} {redacted(place)}" for name, place in where if place is not None]
        count = len(self.stats.warnings)
        said += [f"{count} warning{'' if count == 1 else 's'} (stats.warnings)"] if count else []
        return f"<Result: {'; '.join(said)}>"

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas frame.

        Returns:
            a frame of its own, as `table.to_pandas()` makes it. One thing is another: a column of integers that has nulls, and numbers beyond 2**53,
            has pandas' nullable integers (`Int64`, `UInt64`), as the doubles that others with nulls become (NaN for a null) cannot hold them.
        Raises:
            ConfigError: there is no table in memory, or no pandas.
        """
        if self.table is None:
            raise ConfigError(
                "there is no table in memory: the script wrote nothing and there is no output_schema=, or it went to output="
            )
        try:
            return to_pandas(self.table)
        except ModuleNotFoundError as e:
            raise ConfigError(f"to_pandas() needs pandas: pip install 'akrunner[pandas]' ({e})") from None
