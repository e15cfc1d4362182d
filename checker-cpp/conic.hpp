// Ω by its conic form: Ω(u) = inf { t : b − A (u', t, x) ∈ K for some u' ≥ u and some x }.
//
// A multiplier y ∈ K* with Aᵀy = (g, −τ, 0) and g ≥ τ v shows Ω*(v) ≤ bᵀy/τ, a point of
// the epigraph shows Ω(u) ≤ t. Only exponential and power cones need more than rational
// numbers: a sum of logarithms, which has to be 1e-30 (1 + all sizes) or more.

#pragma once

#include <string>
#include <vector>

#include "interval.hpp"
#include "json.hpp"
#include "losses.hpp"

struct Cone {
    std::string name;
    size_t size;
    Rational power;  // of a power cone
};

struct Entry {
    size_t row, column;
    Rational value;
};

struct Conic {
    std::vector<Entry> A;
    Rationals b;
    std::vector<Cone> cones;
    size_t width = 0;  // columns of A

    void check(size_t M) {
        size_t rows = 0;
        for (const Cone& cone : cones) rows += cone.size;
        demand(rows == b.size(), "b and the cones have different sizes");
        for (const Entry& entry : A) {
            demand(entry.row < b.size(), "an entry of A is below the last row");
            width = std::max(width, entry.column + 1);
        }
        demand(M < width && width <= A.size(), "A has too few or too many columns");
    }

    // Ω* at the roots of squares is at most this.
    Rational conjugate(const Rationals& squares, const std::vector<Integer>& y) const {
        demand(y.size() == b.size(), "the multiplier has another length");
        Rationals sums(width);
        Rational value = 0;
        for (const Entry& entry : A) sums[entry.column] += entry.value * y[entry.row];
        const size_t M = squares.size();
        const Rational tau = -sums[M];
        demand(tau > 0, "the multiplier has no t");
        for (size_t j = M + 1; j < width; ++j)
            demand(sums[j] == 0, "the multiplier does not solve its equations");
        for (size_t m = 0; m < M; ++m)
            demand(sums[m] >= 0 && sums[m] * sums[m] >= tau * tau * squares[m],
                   "the multiplier is too small");
        for (size_t i = 0; i < b.size(); ++i) value += b[i] * y[i];
        Rationals s(y.begin(), y.end());
        demand(inside(s, true), "the multiplier is outside of the dual cone");
        return value / tau;
    }

    // Ω at the roots of squares is at most this.
    Rational penalty(const Rationals& squares, const std::vector<Integer>& point) const {
        demand(point.size() == width + 1 && point.back() > 0,
               "the point of the epigraph has another length or no denominator");
        Rationals z, s = b;
        for (size_t j = 0; j < width; ++j) {
            z.emplace_back(point[j], point.back());
            z.back().canonicalize();
        }
        for (size_t m = 0; m < squares.size(); ++m)
            demand(z[m] >= 0 && z[m] * z[m] >= squares[m],
                   "the point of the epigraph is too small");
        for (const Entry& entry : A) s[entry.row] -= entry.value * z[entry.column];
        demand(inside(s, false), "the point is outside of the epigraph");
        return z[squares.size()];
    }

  private:
    static constexpr long MOST_BITS = 6144;

    bool inside(const Rationals& s, bool dual) const {
        size_t start = 0;
        for (const Cone& cone : cones) {
            const auto begin = s.begin() + static_cast<long>(start);
            const Rationals part(begin, begin + static_cast<long>(cone.size));
            if (!inside(cone, part, dual)) return false;
            start += cone.size;
        }
        return true;
    }

    static bool inside(const Cone& cone, const Rationals& s, bool dual) {
        if (cone.name == "zero") return dual || zero(s);
        if (cone.name == "nonnegative") {
            for (const Rational& x : s)
                if (x < 0) return false;
            return true;
        }
        if (cone.name == "second_order") {
            Rational rest = s[0] * s[0];
            for (size_t i = 1; i < s.size(); ++i) rest -= s[i] * s[i];
            return s[0] >= 0 && rest >= 0;
        }
        if (cone.name == "exponential") {
            if (!dual) return exponential(s[0], s[1], s[2]);
            return exponential(s[0] - s[1], -s[0], s[2]);
        }
        const Rational other = 1 - cone.power;
        if (!dual) return powers(s[0], s[1], s[2], cone.power);
        return powers(s[0] / cone.power, s[1] / other, s[2], cone.power);
    }

    static bool zero(const Rationals& s) {
        for (const Rational& x : s)
            if (x != 0) return false;
        return true;
    }

    // y exp(x/y) ≤ z.
    static bool exponential(const Rational& x, const Rational& y, const Rational& z) {
        if (y == 0) return x <= 0 && z >= 0;
        return y > 0 && z > 0 && positive({{1, z / y}}, -x / y);
    }

    // x^a y^(1 − a) ≥ |z|.
    static bool powers(const Rational& x, const Rational& y, const Rational& z, const Rational& a) {
        if (z == 0) return x >= 0 && y >= 0;
        const Rational size = abs(z);
        return x > 0 && y > 0 && positive({{a, x / size}, {1 - a, y / size}}, 0);
    }

    // Whether Σ c ln q + rest ≥ 1e-30 (1 + Σ c |ln q| + |rest|).
    static bool positive(const std::vector<std::pair<Rational, Rational>>& logarithms,
                         const Rational& rest) {
        Integer ten;
        mpz_ui_pow_ui(ten.get_mpz_t(), 10, 30);
        const Rational least(1, ten);
        for (Interval::bits = 192; Interval::bits <= MOST_BITS; Interval::bits *= 2) {
            Interval above(rest > 0 ? rest : Rational(0)), below(rest < 0 ? Rational(-rest) : Rational(0));
            for (const auto& [c, q] : logarithms) {
                const bool large = q >= 1;
                const Interval size = Interval(large ? q : Rational(1 / q)).log();
                (large ? above : below) += Interval(c) * size;
            }
            const Interval sizes = Interval(1) + above + below;
            const Interval value = above - below - Interval(least) * sizes;
            if (value.surely_at_least(0)) return true;
            if (value.surely_below(0)) return false;
        }
        return false;
    }
};
