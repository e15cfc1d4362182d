// Kernels by rules of points: entries between a rational number and that plus a radius.
//
// gaussian exp(−rate ‖x_i − x_j‖²), power (⟨x_i, x_j⟩ + offset)^degree, divided by numbers
// and by r_i r_j. Entries are computed when they are needed, row after row: memory holds
// one kernel's points. Powers without divisors are exact integers over a power of two;
// all others come from intervals.

#pragma once

#include <string>
#include <vector>

#include "exact.hpp"
#include "interval.hpp"
#include "losses.hpp"

struct Rule {
    std::string name;
    Rational number;  // rate or offset
    unsigned long degree = 1;
    std::vector<size_t> columns;
    Rational common = 1;  // the product of all numbers D
    Rationals rows;       // of all r_i; empty if there are no divisors
};

class RuleKernel {
  public:
    RuleKernel(const Rule& given, const std::vector<std::vector<double>>& features, size_t samples)
        : rule(given), n(samples), exact(rule.name == "power" && rule.rows.empty()) {
        std::vector<double> chosen;
        for (const size_t column : rule.columns)
            chosen.insert(chosen.end(), features[column].begin(), features[column].end());
        points = Entries(chosen).dyadics();
        exponent = exact ? exact_exponent() : rounded_exponent();
    }

    // K̂ a for each of some vectors a, and afterwards the radius of all entries.
    std::vector<Dyadics> times(const std::vector<Dyadics>& vectors) {
        std::vector<Dyadics> out;
        for (const Dyadics& a : vectors)
            out.push_back({std::vector<Integer>(n), exponent + a.e});
        Integer entry;
        Interval::bits = exact ? 64 : BITS;
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i; j < n; ++j) {
                compute(entry, i, j);
                for (size_t v = 0; v < vectors.size(); ++v) {
                    add(out[v].m[i], entry, vectors[v].m[j]);
                    if (j > i) add(out[v].m[j], entry, vectors[v].m[i]);
                }
            }
        return out;
    }

    Rational radius() const { return scaled(steps, exponent); }

  private:
    static constexpr long BITS = 128;  // of intervals
    static constexpr long KEPT = 104;  // of the largest entry

    const Rule& rule;
    const size_t n;
    const bool exact;
    Dyadics points;  // feature after feature
    long exponent = 0;
    Integer steps = 0;  // the radius in units of 2^exponent

    static void add(Integer& sum, const Integer& a, const Integer& b) {
        mpz_addmul(sum.get_mpz_t(), a.get_mpz_t(), b.get_mpz_t());
    }

    // ⟨x_i, x_j⟩ or ‖x_i − x_j‖², in units of 4^points.e.
    Integer base(size_t i, size_t j) const {
        Integer sum, difference;
        const bool apart = rule.name == "gaussian";
        for (size_t c = 0; c < rule.columns.size(); ++c) {
            const Integer& x = points.m[c * n + i];
            const Integer& z = points.m[c * n + j];
            if (apart) {
                difference = x - z;
                add(sum, difference, difference);
            } else {
                add(sum, x, z);
            }
        }
        return sum;
    }

    // The exponent of ⟨x_i, x_j⟩ + offset.
    long sum_exponent() const {
        const long offset = -static_cast<long>(mpz_sizeinbase(rule.number.get_den_mpz_t(), 2) - 1);
        return std::min(2 * points.e, offset);
    }
    long exact_exponent() const { return static_cast<long>(rule.degree) * sum_exponent(); }

    Integer power(size_t i, size_t j) const {
        const long e = sum_exponent();
        Integer sum = base(i, j) << static_cast<unsigned long>(2 * points.e - e);
        sum += Rational(rule.number * scaled(1, -e)).get_num();
        mpz_pow_ui(sum.get_mpz_t(), sum.get_mpz_t(), rule.degree);
        return sum;
    }

    Rational divisor(size_t i, size_t j) const {
        return rule.rows.empty() ? Rational(1) : Rational(rule.common * rule.rows[i] * rule.rows[j]);
    }

    // Of the largest size on the diagonal, where the largest of all entries is.
    long rounded_exponent() const {
        Rational top = 0;
        for (size_t i = 0; i < n; ++i) {
            Rational size = 1;
            if (rule.name == "power") size = scaled(power(i, i), exact_exponent());
            top = std::max(top, Rational(size / divisor(i, i)));
        }
        const long above = static_cast<long>(mpz_sizeinbase(top.get_num_mpz_t(), 2)) -
                           static_cast<long>(mpz_sizeinbase(top.get_den_mpz_t(), 2));
        return top == 0 ? 0 : above - KEPT;
    }

    void compute(Integer& entry, size_t i, size_t j) {
        if (exact) {
            entry = power(i, j);
            return;
        }
        Interval value;
        if (rule.name == "gaussian") {
            const Rational t = rule.number * scaled(base(i, j), 2 * points.e);
            value = Interval(Rational(-t)).exp();
            if (!rule.rows.empty()) value = value / Interval(divisor(i, j));
        } else {
            value = Interval(Rational(scaled(power(i, j), exact_exponent()) / divisor(i, j)));
        }
        const Integer width = value.below(entry, exponent);
        if (width > steps) steps = width;
    }
};
