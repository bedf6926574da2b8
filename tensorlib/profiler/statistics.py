"""Figures of one event, or of several together."""

from dataclasses import dataclass, field
from typing import ClassVar

Shapes = tuple[tuple[int, ...], ...]


@dataclass
class Figures:
    """Of one event, or of all that have a key in common. Times are in microseconds.

    `cpu_time_total` includes what an event ran inside of it, `self_cpu_time_total` does not, and so
    it is for memory: bytes that were in use afterwards and not before.
    """

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    input_shapes: Shapes = ()
    stack: list[str] = field(default_factory=list)
    thread: int = 0
    begin: float = 0.0                          # of a single event: when it began
    inside: bool = False                        # the first event was inside of another

    # of a GPU, which is not there
    device_time: ClassVar[float] = 0.0
    device_time_total: ClassVar[float] = 0.0
    self_device_time_total: ClassVar[float] = 0.0
    device_memory_usage: ClassVar[int] = 0
    self_device_memory_usage: ClassVar[int] = 0
    cuda_time: ClassVar[float] = 0.0
    cuda_time_total: ClassVar[float] = 0.0
    self_cuda_time_total: ClassVar[float] = 0.0
    cuda_memory_usage: ClassVar[int] = 0
    self_cuda_memory_usage: ClassVar[int] = 0

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def cpu_time(self) -> float:
        """Of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, other: "Figures") -> None:
        """Adds the figures of another."""
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
