"""Flink's planner, in whichever of Java's threads a call of the program arrives. Imports PyFlink."""

from __future__ import annotations

import contextlib
from typing import Any

from py4j.protocol import Py4JError
from pyflink.java_gateway import get_gateway
from pyflink.table import Table

_CALCITE, _FLINK = "org.apache.calcite.rel.metadata.", "org.apache.flink.table.planner.plan.metadata."


def be_ready(table: Table) -> None:
    """Have Flink's planner ready in the thread of Java that serves this program's calls now.

    The planner keeps its metadata per thread, and only the thread that made the table's environment has it
    (https://issues.apache.org/jira/browse/FLINK-23020). py4j opens a second connection, and Java a thread for it, when two threads of Python
    have something to say at a time: one of akrunner's may just tell Java that an object is not used any more. If the program's calls go on over the
    second one, planning ends there in "NullPointerException: metadataHandlerProvider", and no query of that environment works any more, until
    this has been called.
    What remains: the connection may change once more between this call and the planning.
    """
    with contextlib.suppress(Py4JError):  # another version of Flink may lack these classes, and may not need them
        _be_ready(table)


def _be_ready(table: Table) -> None:
    jvm = get_gateway().jvm
    planner = table._t_env._j_tenv.getPlanner()
    loader = planner.getClass().getClassLoader()

    def of(name: str) -> Any:
        return jvm.java.lang.Class.forName(name, True, loader)

    provider = of(_CALCITE + "RelMetadataQueryBase").getField("THREAD_PROVIDERS").get(None)
    if provider.get() is None:
        types = get_gateway().new_array(jvm.java.lang.Class, 1)
        types[0] = of(_CALCITE + "RelMetadataProvider")
        arguments = get_gateway().new_array(jvm.java.lang.Object, 1)
        arguments[0] = of(_FLINK + "FlinkDefaultRelMetadataProvider").getMethod("INSTANCE", None).invoke(None, None)
        provider.set(of(_CALCITE + "JaninoRelMetadataProvider").getMethod("of", types).invoke(None, arguments))
        # what a query that has failed here has left behind
        planner.plannerContext().getCluster().invalidateMetadataQuery()
