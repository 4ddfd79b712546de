from tests.guards import one_guard

__all__ = ["one_guard"]
