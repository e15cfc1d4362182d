"""Sine and cosine: the same bits wherever a number stands in an array."""

import numpy as np

from .compiled import compiled

PER_QUARTER = 0.6366197723675814  # 2/π
QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
TO_INTEGER = 1.5 * 2.0**52
SINE = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03,
    -1.98412698298579493134e-04, 2.75573137070700676789e-06,
    -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
COSINE = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03,
    2.48015872894767294178e-05, -2.75573143513906633035e-07,
    2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


@compiled()
def waves(angles, out, scale):
    """scale·(cos, sin) of all angles: (r, w) → (r, 2 w).

    The angle less the nearest multiple of π/2, in three parts, then polynomials (those
    of fdlibm). The error is a few units of rounding for angles below 10⁵.
    """
    s1, s2, s3, s4, s5, s6 = SINE
    c1, c2, c3, c4, c5, c6 = COSINE
    width = angles.shape[1]
    for i in range(len(angles)):
        row, cosines, sines = angles[i], out[i, :width], out[i, width:]
        for j in range(width):
            k = (row[j] * PER_QUARTER + TO_INTEGER) - TO_INTEGER
            r = ((row[j] - k * QUARTER[0]) - k * QUARTER[1]) - k * QUARTER[2]
            z = r * r
            high = s3 + z * (s4 + z * (s5 + z * s6))
            sine = r + r * z * (s1 + z * (s2 + z * high))
            high = c3 + z * (c4 + z * (c5 + z * c6))
            cosine = 1.0 - (0.5 * z - z * z * (c1 + z * (c2 + z * high)))
            q = k - 4.0 * np.floor(k * 0.25)  # 0, 1, 2 or 3 quarters
            odd = q == 1.0 or q == 3.0
            c = sine if odd else cosine
            s = cosine if odd else sine
            cosines[j] = scale * (-c if q == 1.0 or q == 2.0 else c)
            sines[j] = scale * (-s if q >= 2.0 else s)
