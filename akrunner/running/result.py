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


#: how many column names the repr of a result shows
_NAMED = 8


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: the rows that the scripts wrote, the chief's first; None if they went to a file, or if the scripts wrote nothing
            and there is no output schema.
        output: the file that the rows (in a train job: the model) were written to, None if there is none.
        tasks: the result of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound, if that is known.
        work_dir: the directory of the job, None unless it was kept (`work_dir=`, `debug=True`).
        model: the model of a train job, None for other jobs.
        run: the name under which the run is kept (`akrunner.runs.get`), None if it is not.
    """

    table: pa.Table | None
    output: str | None
    tasks: tuple[TaskResult, ...]
    stats: Stats
    work_dir: str | None
    model: Model | None = None
    run: str | None = None

    def __repr__(self) -> str:
        # a notebook shows this if the result is the last line of a cell
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

    def _repr_html_(self) -> str:
        from akrunner.running import shown

        return shown.result(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas frame.

        Returns:
            a new frame, as `table.to_pandas()` makes it, with one difference. A column of integers with nulls becomes doubles
            (NaN for a null), but if it also has numbers beyond 2**53, which doubles cannot hold, it becomes pandas' nullable
            integers (`Int64`, `UInt64`).
        Raises:
            ConfigError: there is no table in memory, or pandas is not installed.
        """
        if self.table is None:
            raise ConfigError(
                "there is no table in memory: the script wrote nothing and there is no output_schema=, or it went to output="
            )
        try:
            return to_pandas(self.table)
        except ModuleNotFoundError as e:
            raise ConfigError(f"to_pandas() needs pandas: pip install 'akrunner[pandas]' ({e})") from None
