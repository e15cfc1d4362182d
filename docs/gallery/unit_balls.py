"""
Unit balls
==========

The shape of the unit ball shows which models a regularizer prefers: corners are sparse
models. Left is the ball, right its dual.
"""

import mklopt

mklopt.inspect(mklopt.gallery.owl([2.0, 1.0]), M=2).draw("ball-1-owl.png")
mklopt.inspect(mklopt.gallery.k_support(2), M=3).draw("ball-2-k.png")
