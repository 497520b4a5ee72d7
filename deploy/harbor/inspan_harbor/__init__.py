"""inspan as an agent of Harbor."""

from inspan_harbor.agent import Inspan

__all__ = ["Inspan"]
