"""What Triton's driver says on a machine without a GPU."""

from __future__ import annotations

from typing import Any

from translator.triton_api.backend import GPUTarget

from translator.capture.devices import Device


class NoDevice:
    """Answers what programs ask the driver while they set up, on a machine without a GPU."""

    def __init__(self, device: Device):
        self._device = device

    @property
    def utils(self) -> Any:
        """What asks how much of everything the device has."""
        return self

    def get_device_properties(self, device: int = 0) -> dict[str, Any]:
        return self._device.driver_properties()

    def get_current_target(self) -> GPUTarget:
        return self._device.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """Where `torch.rand(..., device=...)` shall put its tensors: there is only the CPU."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        import torch

        return torch.cpu
