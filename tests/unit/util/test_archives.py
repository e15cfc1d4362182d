"""Archives: read without pickle, only so large, with the arrays that are expected."""

from __future__ import annotations

import struct
import zipfile

import numpy as np
import pytest

from mklopt.util.archives import (
    read_archive,
    read_arrays,
    read_labelled,
    read_labels,
    write_archive,
)

Y = np.array([1.0, -1.0, 1.0])
K = np.stack([np.eye(3), 2 * np.eye(3)])
X = np.arange(6.0).reshape(3, 2)


@pytest.fixture
def save(tmp_path):
    def saved(**arrays):
        np.savez_compressed(tmp_path / "a.npz", **arrays)
        return tmp_path / "a.npz"

    return saved


def test_arrays_come_back_and_no_more_than_is_allowed(save):
    path = save(a=np.arange(1000.0), b=np.ones(2, int))
    found = read_arrays(path, 10_000)
    assert np.array_equal(found["a"], np.arange(1000.0)) and found["b"].dtype == int
    with pytest.raises(
        ValueError, match="unpacked it would take 8272 bytes; at most 8"
    ):
        read_arrays(path, 8_000)


def test_an_archive_of_many_parts_or_of_none_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for i in range(1001):
            archive.writestr(f"{i}.npy", b"")
    with pytest.raises(ValueError, match="unpacked it would take 0 bytes"):
        read_arrays(tmp_path / "many.npz", 10**6)
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ValueError, match="not a zip file"):
        read_arrays(tmp_path / "text.npz", 10**6)
    with zipfile.ZipFile(tmp_path / "notes.npz", "w") as archive:
        archive.writestr("notes.txt", b"words")
    with pytest.raises(ValueError, match="other things than arrays"):
        read_arrays(tmp_path / "notes.npz", 10**6)
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "none.npz", 10**6)


def stated(shape: str, values: np.ndarray) -> bytes:
    """An array in NumPy's format, with a header that states this shape."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text))
    return head + text + values.tobytes()


def test_a_header_with_a_wrong_shape_is_refused(tmp_path):
    """Smaller shapes would lose numbers, larger ones ask for memory."""
    path = tmp_path / "a.npz"
    huge = "9" * 25
    for shape in ("(3,)", "(2,)", "(4,)", "(0,)", "()", "(-3,)", "(-1, -3)", "(True,)",
                  "(1.5,)", "('a',)", "3", "None", f"({huge},)", f"({huge}, 0)",
                  "(1000000000,)", "(3, 3)"):  # fmt: skip
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("y.npy", stated(shape, Y))
        if shape == "(3,)":
            assert np.array_equal(read_arrays(path, 10**6)["y"], Y)
            continue
        with pytest.raises(ValueError) as caught:
            read_arrays(path, 10**6)
        assert 10 < len(str(caught.value)) < 200 and "\n" not in str(caught.value)
        assert "allocate" not in str(caught.value)


def test_a_number_is_not_a_file(tmp_path):
    """The number 1 is the standard output, and would be closed."""
    uses = {read_arrays: (10,), read_archive: ("x",), write_archive: ({}, {})}
    odd: tuple = (0, 1, True, None, b"a.npz", 1.5, [], "")
    for wrong in odd:
        for use, more in uses.items():
            with pytest.raises(ValueError, match="give the name of a file as text"):
                use(wrong, *more)  # type: ignore[operator]


def test_labels_come_with_features_or_kernels(save):
    found = read_labelled(save(y=Y, X=X.astype(int), more=Y), 1000)
    assert set(found) == {"y", "X"} and found["X"].dtype == float
    assert np.array_equal(found["X"], X) and np.array_equal(found["y"], Y)
    assert np.array_equal(read_labelled(save(y=Y, K=K), 1000)["K"], K)
    assert set(read_labelled(save(y=Y, K=K, X=X), 1000)) == {"y", "X", "K"}


@pytest.mark.parametrize(
    "arrays, said",
    [
        ({"K": K}, "it has the arrays K; write labels y"),
        ({"y": Y}, "it has the arrays y; write labels y"),
        ({}, "it has the arrays none"),
        (
            {"y": Y[:2], "K": K},
            r"K is \(2, 3, 3\) for 2 labels y; it must be \(M, n, n",
        ),
        ({"y": Y, "K": K[0]}, r"K is \(3, 3\) for 3 labels"),
        ({"y": Y, "K": K[:, :2]}, r"K is \(2, 2, 3\) for 3 labels"),
        ({"y": Y, "X": X.T}, r"X has shape \(2, 3\); .* each of the 3 labels y"),
        ({"y": Y, "X": X * np.nan}, "X has missing or infinite values"),
        ({"y": Y, "X": X * 1j}, "X must be an .* complex"),
        ({"y": Y * np.inf, "X": X}, "y must hold two labels or more, all .* finite"),
        ({"y": Y[:1], "X": X[:1]}, "y must hold two labels or more"),
        ({"y": Y[:, None], "X": X}, "y must hold two labels or more"),
        ({"y": ["a", "b", "c"], "X": X}, "y must be one number per sample"),
    ],
)
def test_a_file_that_does_not_fit_gets_one_sentence(save, arrays, said):
    with pytest.raises(ValueError, match=rf"a\.npz cannot be used: {said}"):
        read_labelled(save(**arrays), 1000)


def test_the_caller_says_how_many_numbers_it_takes(save, tmp_path):
    path = save(y=np.zeros(400), X=np.zeros((400, 1000)))
    assert read_labelled(path, 400 * 1001)["X"].shape == (400, 1000)
    with pytest.raises(ValueError, match="cannot be used: unpacked it would take"):
        read_labelled(path, 100_000)
    with pytest.raises(ValueError, match=r"none\.npz cannot be used: No such file"):
        read_labelled(tmp_path / "none.npz", 100)


def test_an_archive_of_ours_has_a_kind_and_a_description(tmp_path):
    about = {"kind": "trace", "about": {"solver": "ℓ1"}}
    write_archive(tmp_path / "a.npz", {"x": X}, about)
    arrays, found = read_archive(tmp_path / "a.npz", "trace")
    assert found == about and list(arrays) == ["x"] and np.array_equal(arrays["x"], X)
    with pytest.raises(ValueError, match="holds a trace, not a result"):
        read_archive(tmp_path / "a.npz", "result")
    write_archive(tmp_path / "b.npz", {}, {"kind": "trace", "about": []})
    np.savez(tmp_path / "c.npz", x=X)
    for name in ("b", "c"):
        with pytest.raises(ValueError, match="is not a file written by mklopt"):
            read_archive(tmp_path / f"{name}.npz", "trace")


def test_labels_from_arrays_archives_and_text(tmp_path):
    np.save(tmp_path / "y.npy", Y)
    np.savez(tmp_path / "y.npz", y=Y, X=X)
    np.savetxt(tmp_path / "y.txt", Y)
    (tmp_path / "y.csv").write_text("1\n-1\n1\n")
    for name in ("y.npy", "y.npz", "y.txt", "y.csv"):
        np.testing.assert_array_equal(read_labels(tmp_path / name), Y)


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("y.txt", "a\nb\n", "cannot be used: could not convert"),
        ("y.txt", "1\nnan\n", "two labels or more, all of them finite"),
        ("y.txt", "1\n", "two labels or more"),
        ("y.txt", "1 2\n3 4\n", "two labels or more"),
        ("y.npy", "text", "cannot be used"),
        ("y.npz", "text", "cannot be used"),
    ],
)
def test_files_without_labels_get_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=said) as error:
        read_labels(tmp_path / name)
    assert "\n" not in str(error.value) and name in str(error.value)


def test_no_labels(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read_labels(tmp_path / "y.txt")
    np.savez(tmp_path / "y.npz", X=X)
    with pytest.raises(ValueError, match="it has no array y"):
        read_labels(tmp_path / "y.npz")
