"""PAI mode: scripts of PAI-TensorFlow by the command that runs them there.

::

    words, shell, texts     a command; a shell script's calls of odpscmd; a caller's text, words or file -> statements
    parameters              every -D of PAI's, in one table
    algorithms, clusters, flags, places   what -name, -Dcluster, the script's flags, and oss:// and file:// mean here
    plan                    a command -> what it is going to do, checked, in words and as JSON
    job                     `akrunner.pai`
"""
