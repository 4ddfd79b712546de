"""How the tasks of one job find each other when they are on several machines; `rendezvous.proto` has the messages.

Jobs of the local engine do not need it. Needs grpcio: the extra `cluster`.

::

    RendezvousServer   beside whoever submitted the job, or the chief
    RendezvousClient   beside every task: register -> who is where; signs of life; the last word; what befalls the others
"""

from akrunner.cluster.rendezvous.client import RendezvousClient
from akrunner.cluster.rendezvous.server import RendezvousServer

__all__ = ["RendezvousClient", "RendezvousServer"]
