"""Every native level that this machine can run."""

from __future__ import annotations

import pytest

from kernels.native_program import available_isas


@pytest.fixture(params=available_isas())
def isa(request: pytest.FixtureRequest) -> str:
    return str(request.param)
