"""PAI mode: runs a script of PAI-TensorFlow by the same command that runs it on PAI.

::

    words                   a PAI command, as text or as words -> `Command`
    shell                   a shell script -> the statements that its calls of odpscmd hand over
    texts                   what the caller gives (text, words or a file) -> statements
    parameters              every -D parameter of PAI, in one table
    algorithms, clusters, flags, places   what -name, -Dcluster, the script's flags, and oss:// and file:// mean here
    plan                    a command -> the plan of its job, checked, as text and as JSON
    job                     `akrunner.pai`
"""
