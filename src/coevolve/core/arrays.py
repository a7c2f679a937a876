"""Names for the array types used throughout."""

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
