// Losses: V(f, y) at exact f, and −C V*(−a/C, y) at an exact a, or that a is outside.

#pragma once

#include <string>
#include <vector>

#include "interval.hpp"
#include "json.hpp"

using Rationals = std::vector<Rational>;

enum class Labels { Signs, Ones, Classes, Any };

struct Loss {
    std::string name;
    Rational parameter;  // eps, delta or tau

    Labels labels() const {
        if (name == "hinge" || name == "logistic") return Labels::Signs;
        if (name == "one_class") return Labels::Ones;
        if (name == "multiclass_hinge" || name == "multinomial") return Labels::Classes;
        return Labels::Any;
    }
    bool entropic() const { return name == "logistic" || name == "multinomial"; }

    // V(f, y); a class y is an index into f.
    Interval value(const Rationals& f, const Rational& y) const {
        if (labels() == Labels::Classes) {
            const size_t own = y.get_num().get_ui();
            return name == "multinomial" ? log_sum(f, own) : Interval(worst(f, own));
        }
        const Rational r = f[0] - y, size = abs(r), none = 0;
        if (name == "logistic") return log_sum({-y * f[0], none}, 1);
        if (name == "squared") return Rational(r * r / 2);
        if (name == "eps_insensitive") return Rational(std::max(none, Rational(size - parameter)));
        if (name == "quantile")
            return Rational(std::max(Rational(-parameter * r), Rational((1 - parameter) * r)));
        if (name == "huber" && size > parameter)
            return Rational(parameter * size - parameter * parameter / 2);
        if (name == "huber") return Rational(r * r / 2);
        return Rational(std::max(none, Rational(1 - y * f[0])));  // hinge and one_class
    }

    // Whether a/C lies in the domain.
    bool inside(const Rationals& a, const Rational& y, const Rational& C) const {
        if (labels() == Labels::Classes) {
            Rational total = 0;
            for (size_t j = 0; j < a.size(); ++j) {
                total += a[j];
                if (a[j] > (y == j ? C : Rational(0))) return false;
            }
            return total == 0;
        }
        const Rational t = a[0] * y, size = abs(a[0]);
        if (name == "squared") return true;
        if (name == "eps_insensitive") return size <= C;
        if (name == "huber") return size <= parameter * C;
        if (name == "quantile")
            return (parameter - 1) * C <= a[0] && a[0] <= parameter * C;
        return 0 <= t && t <= C;
    }

    // −C V*(−a/C, y), inside the domain: a part in rationals and an entropy.
    Rational rational_gain(const Rationals& a, const Rational& y, const Rational& C) const {
        if (name == "multiclass_hinge") return a[y.get_num().get_ui()];
        if (entropic()) return 0;
        const Rational linear = a[0] * y;
        if (name == "squared" || name == "huber") return linear - a[0] * a[0] / (2 * C);
        if (name == "eps_insensitive") return linear - parameter * abs(a[0]);
        return linear;
    }
    Interval entropy(const Rationals& a, const Rational& y, const Rational& C) const {
        if (!entropic()) return {};
        if (name == "logistic") {
            const Rational t = a[0] * y / C;
            return Interval(C) * (Interval(t).entropy() + Interval(Rational(1 - t)).entropy());
        }
        Interval out;
        for (size_t j = 0; j < a.size(); ++j)
            out += Interval(Rational((y == j ? 1 : 0) - a[j] / C)).entropy();
        return Interval(C) * out;
    }

  private:
    // ln Σ exp f_j − f_own.
    static Interval log_sum(const Rationals& f, size_t own) {
        size_t top = 0;
        for (size_t j = 0; j < f.size(); ++j)
            if (f[j] > f[top]) top = j;
        Interval others;
        for (size_t j = 0; j < f.size(); ++j)
            if (j != top) others += Interval(Rational(f[j] - f[top])).exp();
        return Interval(Rational(f[top] - f[own])) + others.log1p();
    }

    // max_j (f_j + [j ≠ own]) − f_own.
    static Rational worst(const Rationals& f, size_t own) {
        Rational out = 0;
        for (size_t j = 0; j < f.size(); ++j)
            if (j != own) out = std::max(out, Rational(f[j] + 1 - f[own]));
        return out;
    }
};
