"""Read a problem as text with NumPy alone: python read_problem.py FILE."""

import sys

import numpy as np


def read_problem(path):
    """Texts and arrays by key; kernels is a list of matrices."""
    found: dict = {}
    with open(path) as file:
        assert file.readline().split() == ["mklopt-problem", "1"]
        for kind, key, *rest in map(str.split, iter(file.readline, "end\n")):
            if kind == "text":
                found[key] = rest[0]
            else:
                rows, columns = map(int, rest)
                lines = [file.readline().split() for _ in range(rows)]
                found[key] = np.array(lines, float).reshape(rows, columns)
    factors = [found[k] for k in found if k.startswith("factor.")]
    triangles = [found[k].ravel() for k in found if k.startswith("triangle.")]
    kernels = [L @ L.T for L in factors]
    for triangle in triangles:
        K = np.zeros((len(found["y"]), len(found["y"])))
        K[np.triu_indices(len(K))] = triangle
        kernels.append(K + np.triu(K, 1).T)
    return found | {"kernels": kernels}


if __name__ == "__main__":
    problem = read_problem(sys.argv[1])
    print(problem["name"], *problem["y"].shape, len(problem["kernels"]))
    print(" ".join(f"{np.sum(K):.17g}" for K in problem["kernels"]))
