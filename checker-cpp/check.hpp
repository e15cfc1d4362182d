// The proof: semi-definite kernels, a feasible dual point, and the two bounds.
//
// What is rational is computed exactly. Roots, powers, exp and ln are intervals, with more
// digits until a claim is decided. As the specification says, 1e-30 of the sum of all
// magnitudes is taken off the lower and added to the upper value.

#pragma once

#include <functional>

#include "claim.hpp"

class Checker {
  public:
    explicit Checker(const Claim& given)
        : c(given), v2(c.M()), u2(c.M()), f(c.k, Dyadics{std::vector<Integer>(c.n), 0}), errors(c.k) {}

    void prove() {
        check_dual();
        for (size_t m = 0; m < c.M(); ++m) visit(m);
        prove_lower();
        prove_upper();
    }

  private:
    static constexpr long MOST_BITS = 6144;  // closer ties are not decided: refused
    const Claim& c;
    Rationals v2, u2;         // v_m² with s, u_m² with t
    std::vector<Dyadics> f;   // of every class, without t and the bias
    std::vector<Rationals> a;  // s α_i
    Rationals errors;          // of f, for every class, without t

    static Rational margin() {
        Integer ten;
        mpz_ui_pow_ui(ten.get_mpz_t(), 10, 30);
        return Rational(1, ten);
    }

    Dyadics column(const Dyadics& all, size_t cls) const {
        Dyadics out{{}, all.e};
        for (size_t i = cls; i < all.size(); i += c.k) out.m.push_back(all.m[i]);
        return out;
    }

    void check_dual() {
        for (size_t cls = 0; cls < c.k && c.bias; ++cls) {
            Integer sum;
            for (const Integer& x : column(c.alpha, cls).m) sum += x;
            demand(sum == 0, "the dual point is infeasible: sum alpha is not 0");
        }
        for (size_t i = 0; i < c.n; ++i) {
            a.emplace_back();
            for (size_t cls = 0; cls < c.k; ++cls)
                a.back().push_back(c.shrink * c.alpha.at(i * c.k + cls));
            demand(c.loss.inside(a.back(), c.y[i], c.C[i]),
                   "the dual point is infeasible: alpha is outside the domain of the loss");
        }
    }

    // ---- kernels, one at a time

    void visit(size_t m) {
        if (!c.rules.empty()) return visit_rule(m);
        const Entries part(c.entries(m));
        if (!c.factors)
            demand(semidefinite(shifted(part, m)),
                   "kernel " + std::to_string(m) + " is not proved positive semi-definite");
        for (size_t cls = 0; cls < c.k; ++cls) {
            const Dyadics alpha = column(c.alpha, cls);
            const bool weighted = c.point == Claim::Weights;
            Dyadics image;
            const double theta = weighted ? c.theta[m] : 0;
            const Rational quad = product(part, m, alpha, theta != 0 ? &image : nullptr);
            v2[m] += c.shrink * c.shrink * quad;
            if (weighted) {
                u2[m] += c.stretch * c.stretch * rational(theta) * rational(theta) * quad;
                if (theta != 0) add(f[cls], theta, image);
                continue;
            }
            const Dyadics w = column(Entries(c.parts[m]).dyadics(), cls);
            const bool features = c.point == Claim::Features;
            const Rational square = features ? inner(w, w) : product(part, m, w, &image);
            if (features) image = times(part, w);
            u2[m] += c.stretch * c.stretch * square;
            add(f[cls], 1, image);
        }
    }

    // A kernel by a rule: entries are known to a radius, norms and predictions too.
    void visit_rule(size_t m) {
        const bool weighted = c.point == Claim::Weights;
        std::vector<Dyadics> vectors;
        for (size_t cls = 0; cls < c.k; ++cls) vectors.push_back(column(c.alpha, cls));
        for (size_t cls = 0; cls < c.k && !weighted; ++cls)
            vectors.push_back(column(Entries(c.parts[m]).dyadics(), cls));
        RuleKernel kernel(c.rules[m], c.points, c.n);
        std::vector<Dyadics> images = kernel.times(vectors);
        const Rational radius = kernel.radius(), t2 = c.stretch * c.stretch;
        for (size_t v = 0; v < vectors.size(); ++v) {
            Integer whole;
            for (const Integer& x : vectors[v].m) whole += abs(x);
            const Rational size = scaled(whole, vectors[v].e);
            Rational square = inner(vectors[v], images[v]) + radius * size * size;
            square += c.shift[m] * inner(vectors[v], vectors[v]);
            if (v < c.k) v2[m] += c.shrink * c.shrink * square;
            if (!weighted && v < c.k) continue;
            const double theta = weighted ? c.theta[m] : 1;
            u2[m] += t2 * rational(theta) * rational(theta) * square;
            ::add(images[v], c.shift[m].get_d(), vectors[v]);
            ::add(f[v % c.k], theta, images[v]);
            errors[v % c.k] += rational(theta) * radius * size;
        }
    }

    // K_m + δ_m I in integers, as a lower triangle.
    Symmetric shifted(const Entries& K, size_t m) const {
        Symmetric S{c.n, {std::vector<Integer>(c.n * (c.n + 1) / 2), K.e}};
        for (size_t i = 0, place = 0; i < c.n; ++i)
            for (size_t j = i; j < c.n; ++j, ++place)
                K.add_product(S.entries.m[j * (j + 1) / 2 + i], place, Integer(1));
        const Rational& delta = c.shift[m];
        const long e = -static_cast<long>(mpz_sizeinbase(delta.get_den_mpz_t(), 2) - 1);
        if (delta == 0) return S;
        S.entries.lower_to(std::min(e, K.e));
        const Rational scaled_shift = delta * scaled(1, -S.entries.e);
        for (size_t i = 0; i < c.n; ++i)
            S.entries.m[i * (i + 1) / 2 + i] += scaled_shift.get_num();
        return S;
    }

    // αᵀ(K_m + δ_m I)α, and (K_m + δ_m I)α if it is asked for.
    Rational product(const Entries& part, size_t m, const Dyadics& alpha, Dyadics* image) const {
        Rational quad;
        Dyadics without;
        if (c.factors) {
            const Dyadics features = transposed_times(part, alpha);
            quad = inner(features, features);
            if (image) without = times(part, features);
        } else {
            without = symmetric_times(part, alpha);
            quad = inner(alpha, without);
        }
        if (c.shift[m] != 0) quad += c.shift[m] * inner(alpha, alpha);
        if (image) {
            *image = without;
            add(*image, c.shift[m].get_d(), alpha);
        }
        return quad;
    }

    // ---- bounds

    // Whether a claim is surely true; digits are added until it is surely true or false.
    static bool decided(const std::function<int()>& sign) {
        for (Interval::bits = 192; Interval::bits <= MOST_BITS; Interval::bits *= 2)
            if (const int found = sign()) return found > 0;
        return false;
    }

    void prove_lower() const {
        Rational exact = 0, magnitude = 0;
        for (size_t i = 0; i < c.n; ++i) {
            const Rational gain = c.loss.rational_gain(a[i], c.y[i], c.C[i]);
            exact += gain;
            magnitude += abs(gain) + (c.loss.entropic() ? c.C[i] : Rational(0));
        }
        const bool conic = c.formulation.name == "Conic";
        Rational shown = 0;
        if (conic) shown = c.formulation.conic.conjugate(v2, c.multiplier);
        const bool holds = decided([&] {
            Interval gains(exact), size(magnitude);
            for (size_t i = 0; i < c.n && c.loss.entropic(); ++i) {
                const Interval entropy = c.loss.entropy(a[i], c.y[i], c.C[i]);
                gains += entropy;
                size += entropy;
            }
            Interval conjugate, other;  // other: −Ω*, where it is negative
            if (!conic)
                conjugate = c.formulation.conjugate(v2, c.slack);
            else
                (shown > 0 ? conjugate : other) = Interval(Rational(abs(shown)));
            size += conjugate + other;
            const Interval value = gains + other - conjugate - Interval(margin()) * size;
            return value.surely_at_least(c.lower) - value.surely_below(c.lower);
        });
        demand(holds, "lower is not proved");
    }

    // V from above at every f within the error.
    Interval worst(const Rationals& predictions, const Rational& error, const Rational& y) const {
        if (error == 0) return c.loss.value(predictions, y);
        if (c.k > 1) return c.loss.value(predictions, y) + Interval(Rational(2 * error));
        const Rational low = predictions[0] - error, high = predictions[0] + error;
        return Interval::max(c.loss.value({low}, y), c.loss.value({high}, y));
    }

    void prove_upper() const {
        std::vector<Rationals> predictions(c.n);
        for (size_t i = 0; i < c.n; ++i)
            for (size_t cls = 0; cls < c.k; ++cls)
                predictions[i].push_back(c.stretch * (f[cls].at(i) + c.primal_bias[cls]));
        const Rational error = abs(c.stretch) * *std::max_element(errors.begin(), errors.end());
        const bool conic = c.formulation.name == "Conic";
        Rational shown = 0;
        if (conic) shown = c.formulation.conic.penalty(u2, c.epigraph);
        const bool holds = decided([&] {
            Interval value, negative;  // negative: −Ω, where Ω is
            if (!conic)
                value = c.formulation.penalty(u2, c.direction);
            else
                (shown > 0 ? value : negative) = Interval(Rational(abs(shown)));
            for (size_t i = 0; i < c.n; ++i)
                value += Interval(c.C[i]) * worst(predictions[i], error, c.y[i]);
            const Interval size = value + negative;
            value = value - negative + Interval(margin()) * size;
            return value.surely_at_most(c.upper) - value.surely_above(c.upper);
        });
        demand(holds, "upper is not proved");
    }
};
