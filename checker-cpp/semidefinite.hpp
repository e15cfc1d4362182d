// Proof that a symmetric matrix S is positive semi-definite.
//
// R is a Cholesky factor of S − εI in integers over 2^p. S is proved if S − R Rᵀ, exactly,
// has a dominant diagonal: every diagonal entry is at least the sum of the sizes of the
// others in its row. Rounding R by 2^−p leaves entries below 2^(1−p) (the diagonal of S is
// at most 1 here), so that ε = 4n 2^−p is enough. Integers of 128 bits come first (p =
// 56); what is too close to singular for them is tried with p = 600.

#pragma once

#include <type_traits>
#include <vector>

#include "exact.hpp"

using Wide = __int128;

inline Wide root(Wide x) {
    Wide r = static_cast<Wide>(std::sqrt(static_cast<long double>(x)));
    while (r * r > x) --r;
    while ((r + 1) * (r + 1) <= x) ++r;
    return r;
}
inline Integer root(const Integer& x) { return sqrt(x); }

inline Wide fixed(const Integer& x, Wide) {  // for |x| < 2^126
    const Integer size = abs(x), high = size >> 63;
    Integer low = size - (high << 63);
    const Wide value = (static_cast<Wide>(high.get_ui()) << 63) + low.get_ui();
    return x < 0 ? -value : value;
}
inline Integer fixed(const Integer& x, const Integer&) { return x; }

inline Integer integer(Wide x) {
    const bool negative = x < 0;
    if (negative) x = -x;
    Integer out(static_cast<unsigned long>(x >> 63));
    out <<= 63;
    out += static_cast<unsigned long>(x & ((Wide(1) << 63) - 1));
    return negative ? Integer(-out) : out;
}
inline Integer integer(const Integer& x) { return x; }

// The lower triangle of a symmetric n × n matrix, row after row, in integers times 2^e.
struct Symmetric {
    size_t n;
    Dyadics entries;

    const Integer& at(size_t i, size_t j) const { return entries.m[i * (i + 1) / 2 + j]; }
};

// W holds products of two entries of R, and sums of n of them; an entry of R is a Part.
template <typename W, typename Part, int p>
class Proof {
  public:
    explicit Proof(const Symmetric& given) : S(given), n(S.n), R(n * (n + 1) / 2) {}

    bool found() { return bounded() && factorized() && dominated(); }

  private:
    const Symmetric& S;
    const size_t n;
    std::vector<Part> R;
    long half = 0;  // S / 2^(2 half) has a diagonal in (0, 1], some of it above 1/4

    // No entry of a semi-definite matrix is larger than the largest of the diagonal.
    bool bounded() {
        Integer top;
        for (size_t i = 0; i < n; ++i)
            if (S.at(i, i) > top) top = S.at(i, i);
        if (top == 0) return false;
        for (const Integer& x : S.entries.m)
            if (abs(x) > top) return false;
        const long bits = static_cast<long>(mpz_sizeinbase(top.get_mpz_t(), 2));
        const long above = bits + S.entries.e;
        half = above >= 0 ? (above + 1) / 2 : -(-above / 2);
        return true;
    }

    // Entry (i, j) of S / 2^(2 half), rounded down to a multiple of 2^(−2p).
    W rounded(size_t i, size_t j) const {
        const long shift = S.entries.e - 2 * half + 2 * p;
        const Integer& x = S.at(i, j);
        Integer y;
        if (shift >= 0)
            y = x << static_cast<unsigned long>(shift);
        else
            mpz_fdiv_q_2exp(y.get_mpz_t(), x.get_mpz_t(), static_cast<unsigned long>(-shift));
        return fixed(y, W());
    }

    W product(size_t i, size_t j, size_t columns) const {
        const Part* a = &R[i * (i + 1) / 2];
        const Part* b = &R[j * (j + 1) / 2];
        W sum = 0;
        for (size_t k = 0; k < columns; ++k) {
            if constexpr (std::is_same_v<W, Wide>)
                sum += static_cast<Wide>(a[k]) * b[k];
            else
                mpz_addmul(sum.get_mpz_t(), a[k].get_mpz_t(), b[k].get_mpz_t());
        }
        return sum;
    }

    bool factorized() {
        const W most = W(1) << p, epsilon = W(4 * static_cast<long>(n)) << p;
        for (size_t i = 0; i < n; ++i) {
            Part* row = &R[i * (i + 1) / 2];
            for (size_t j = 0; j < i; ++j) {
                const W rest = rounded(i, j) - product(i, j, j);
                const W quotient = rest / W(R[j * (j + 1) / 2 + j]);
                if (quotient > most || quotient < -most) return false;
                row[j] = static_cast<Part>(quotient);
            }
            const W rest = rounded(i, i) - product(i, i, i) - epsilon;
            if (rest <= 0) return false;
            row[i] = static_cast<Part>(root(rest));
            if (row[i] == 0) return false;
        }
        return true;
    }

    // S − R Rᵀ, from S itself: nothing above has to be right.
    bool dominated() const {
        const long e = std::min(S.entries.e, 2 * half - 2 * p);
        const auto up = static_cast<unsigned long>(S.entries.e - e);
        const auto other = static_cast<unsigned long>(2 * half - 2 * p - e);
        std::vector<Integer> room(n);
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j <= i; ++j) {
                Integer rest = S.at(i, j) << up;
                rest -= integer(product(i, j, j + 1)) << other;
                if (i == j) {
                    room[i] += rest;
                } else {
                    room[i] -= abs(rest);
                    room[j] -= abs(rest);
                }
            }
        for (const Integer& x : room)
            if (x < 0) return false;
        return true;
    }
};

inline bool semidefinite(const Symmetric& S) {
    bool zero = true;
    for (const Integer& x : S.entries.m) zero = zero && x == 0;
    return zero || Proof<Wide, int64_t, 56>(S).found() ||
           Proof<Integer, Integer, 600>(S).found();
}
