// Formulations: Ω(u) at exact u², and Ω*(v) at exact v², each from above.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "conic.hpp"
#include "interval.hpp"
#include "json.hpp"
#include "losses.hpp"
#include "semidefinite.hpp"

struct Formulation {
    std::string name;
    std::map<std::string, Exponent> exponents;
    std::map<std::string, Rational> numbers;
    Rationals per_kernel;                     // prior or theta
    std::vector<std::vector<size_t>> groups;  // of kernels
    std::vector<Rationals> E;
    Conic conic;

    // Ω from the squares of u. `direction` is that of NonIsotropic, else empty.
    Interval penalty(const Rationals& squares, const Rationals& direction) const {
        if (name == "FixedWeights") return over_weights(squares, per_kernel);
        if (name == "NonIsotropic") return ellipsoid(squares, direction);
        Intervals u = roots(squares);
        if (name == "GroupLasso") return sum(u);
        if (name == "ElasticNet") {
            const Rational rho = numbers.at("l1_ratio"), rest = (1 - rho) / 2;
            return Interval(rho) * sum(u) + Interval(rest) * Interval(total(squares));
        }
        if (name == "BlockPower") {
            Interval out;
            for (const Interval& a : u)
                if (!a.zero()) out += a.power(exponents.at("q").value);
            return half(out);
        }
        if (name == "Tikhonov") {
            const Interval N = norm(u, block()), square = N * N;
            const Rational factor = 27 * numbers.at("mu") / 16;
            return (Interval(factor) * square * square).cbrt();
        }
        if (name == "WeightedLpNorm")
            for (size_t m = 0; m < u.size(); ++m)
                u[m] = Interval(Rational(squares[m] / per_kernel[m])).sqrt();
        Interval out = half_square(primal_norm(u));
        if (name == "SparseBlockNorm") out += Interval(numbers.at("a")) * sum(u);
        return out;
    }

    // Ω* from the squares of v. `slack` is that of NonIsotropic, else empty.
    Interval conjugate(const Rationals& squares, const Rationals& slack) const {
        if (const Rational end = domain_end(); end > 0) {
            for (const Rational& x : squares)
                demand(x <= end, "the dual point is infeasible: some alpha' K alpha is too large");
            return {};
        }
        if (name == "FixedWeights") {
            Rational out = 0;
            for (size_t m = 0; m < squares.size(); ++m) out += per_kernel[m] * squares[m];
            return Rational(out / 2);
        }
        if (name == "NonIsotropic") {
            check_ellipsoid();
            Rationals x = squares;
            for (size_t m = 0; m < x.size(); ++m) x[m] += slack[m];
            return half(Interval(quadratic(x)).sqrt());
        }
        Intervals v = roots(squares);
        if (name == "ElasticNet") {
            const Rational rho = numbers.at("l1_ratio");
            Interval out;
            for (const Interval& a : less(v, rho)) out += a * a;
            return out / Interval(Rational(2 * (1 - rho)));
        }
        if (name == "BlockPower") {
            const Rational q = exponents.at("q").value;
            Interval out;
            for (const Interval& a : v)
                if (!a.zero())
                    out += (a * Interval(Rational(2 / q))).power(q / (q - 1));
            return half(Interval(Rational(q - 1)) * out);
        }
        if (name == "Tikhonov") {
            const Interval N = norm(v, block().dual()), square = N * N;
            return square * square / Interval(Rational(16 * numbers.at("mu")));
        }
        if (name == "WeightedLpNorm")
            for (size_t m = 0; m < v.size(); ++m)
                v[m] = Interval(Rational(squares[m] * per_kernel[m])).sqrt();
        if (name == "SparseBlockNorm") v = less(v, numbers.at("a"));
        return half_square(dual_norm(v));
    }

  private:
    static Interval half(const Interval& x) { return Interval(Rational(1, 2)) * x; }
    static Interval half_square(const Interval& x) { return half(x * x); }

    static Intervals roots(const Rationals& squares) {
        Intervals out;
        for (const Rational& x : squares) out.push_back(Interval(x).sqrt());
        return out;
    }
    static Intervals less(Intervals v, const Rational& a) {
        for (Interval& x : v) x = (x - Interval(a)).positive();
        return v;
    }
    static Rational total(const Rationals& x) {
        Rational out = 0;
        for (const Rational& a : x) out += a;
        return out;
    }

    // Where Ω* is 0 or ∞: the largest v² with 0. Otherwise 0.
    Rational domain_end() const {
        if (name == "GroupLasso") return 1;
        if (name == "ElasticNet" && numbers.at("l1_ratio") == 1) return 1;
        if (name == "BlockPower" && exponents.at("q").value == 1) return Rational(1, 4);
        return 0;
    }

    // The exponent of the norm of u: q, or 2p/(p + 1).
    Exponent block() const {
        if (name == "BlockL1") return {};
        if (exponents.count("q")) return exponents.at("q");
        const Exponent p = exponents.at("p");
        return p.infinite ? Exponent{false, 2} : Exponent{false, 2 * p.value / (p.value + 1)};
    }
    Intervals inside(const Intervals& x, const Exponent& r) const {
        Intervals out;
        for (const auto& group : groups) {
            Intervals part;
            for (const size_t m : group) part.push_back(x[m]);
            out.push_back(norm(part, r));
        }
        return out;
    }
    Interval primal_norm(const Intervals& u) const {
        if (name == "VSKL") return norm(inside(u, {}), exponents.at("q").doubled());
        if (name == "Composite") return norm(inside(u, exponents.at("r")), exponents.at("s"));
        return norm(u, block());
    }
    Interval dual_norm(const Intervals& v) const {
        if (name == "VSKL")
            return norm(inside(v, {true, 0}), exponents.at("q").doubled().dual());
        if (name == "Composite")
            return norm(inside(v, exponents.at("r").dual()), exponents.at("s").dual());
        return norm(v, block().dual());
    }

    // ½ Σ u²/θ.
    static Interval over_weights(const Rationals& squares, const Rationals& theta) {
        Rational out = 0;
        for (size_t m = 0; m < squares.size(); ++m) {
            demand(theta[m] > 0 || squares[m] == 0, "a kernel of weight 0 is used");
            if (theta[m] > 0) out += squares[m] / theta[m];
        }
        return Rational(out / 2);
    }

    Rational quadratic(const Rationals& x) const {
        Rational out = 0;
        for (size_t i = 0; i < x.size(); ++i)
            for (size_t j = 0; j < x.size(); ++j) out += x[i] * E[i][j] * x[j];
        return out;
    }

    Interval ellipsoid(const Rationals& squares, const Rationals& z) const {
        check_ellipsoid();
        Rationals theta(z.size());
        for (size_t i = 0; i < z.size(); ++i) {
            for (size_t j = 0; j < z.size(); ++j) theta[i] += E[i][j] * z[j];
            demand(theta[i] >= 0, "the direction has a negative weight");
        }
        return Interval(quadratic(z)).sqrt() * over_weights(squares, theta);
    }

    void check_ellipsoid() const {
        Rational common = 1;  // a power of two that makes all entries integers
        for (const auto& row : E)
            for (const Rational& x : row)
                if (x.get_den() > common) common = x.get_den();
        Symmetric S{E.size(), {{}, 0}};
        for (size_t i = 0; i < E.size(); ++i)
            for (size_t j = 0; j <= i; ++j) S.entries.m.push_back(Rational(E[i][j] * common).get_num());
        demand(semidefinite(S), "E is not proved positive semi-definite");
    }
};
