"""Alink's entry points, which are not in akrunner: importing this module raises an ImportError."""

from akdl import absent

absent.refuse(
    __name__,
    "what its Java side starts beside Flink, and what calls main(task_config)",
    "akrunner calls main(task_config) itself; give it the script that has it (mainScriptFile, or the first argument of "
    "akrunner.run)",
)
