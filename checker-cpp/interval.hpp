// Intervals that contain a real number, by MPFR: ends are rounded outward.

#pragma once

#include <mpfr.h>

#include <vector>

#include "exact.hpp"

// An exponent of a norm: a rational number from 1, or ∞.
struct Exponent {
    bool infinite = false;
    Rational value = 1;

    // q* with 1/q + 1/q* = 1.
    Exponent dual() const {
        if (infinite) return {};
        if (value == 1) return {true, 0};
        return {false, value / (value - 1)};
    }
    Exponent doubled() const { return {infinite, 2 * value}; }
};

class Interval {
  public:
    static inline long bits = 192;  // of both ends; raised while a claim is undecided

    Interval() : Interval(0) {}
    Interval(long x) : Interval(Rational(x)) {}
    Interval(const Rational& x) {
        mpfr_inits2(bits, low, high, static_cast<mpfr_ptr>(nullptr));
        mpfr_set_q(low, x.get_mpq_t(), MPFR_RNDD);
        mpfr_set_q(high, x.get_mpq_t(), MPFR_RNDU);
    }
    Interval(const Interval& other) : Interval() { *this = other; }
    Interval& operator=(const Interval& other) {
        mpfr_set(low, other.low, MPFR_RNDD);
        mpfr_set(high, other.high, MPFR_RNDU);
        return *this;
    }
    ~Interval() { mpfr_clears(low, high, static_cast<mpfr_ptr>(nullptr)); }

    Interval& operator+=(const Interval& b) {
        mpfr_add(low, low, b.low, MPFR_RNDD);
        mpfr_add(high, high, b.high, MPFR_RNDU);
        return *this;
    }
    Interval& operator-=(const Interval& b) {
        Interval out;
        mpfr_sub(out.low, low, b.high, MPFR_RNDD);
        mpfr_sub(out.high, high, b.low, MPFR_RNDU);
        return *this = out;
    }

    // Products and quotients of numbers ≥ 0.
    friend Interval operator*(const Interval& a, const Interval& b) {
        Interval out;
        mpfr_mul(out.low, a.low, b.low, MPFR_RNDD);
        mpfr_mul(out.high, a.high, b.high, MPFR_RNDU);
        return out;
    }
    friend Interval operator/(const Interval& a, const Interval& b) {
        Interval out;
        mpfr_div(out.low, a.low, b.high, MPFR_RNDD);
        mpfr_div(out.high, a.high, b.low, MPFR_RNDU);
        return out;
    }
    friend Interval operator+(Interval a, const Interval& b) { return a += b; }
    friend Interval operator-(Interval a, const Interval& b) { return a -= b; }

    // Functions that increase.
    Interval sqrt() const { return each(mpfr_sqrt); }
    Interval cbrt() const { return each(mpfr_cbrt); }
    Interval exp() const { return each(mpfr_exp); }
    Interval log() const { return each(mpfr_log); }
    Interval log1p() const { return each(mpfr_log1p); }

    // max(x, 0).
    Interval positive() const {
        Interval out(*this);
        if (mpfr_sgn(out.low) < 0) mpfr_set_zero(out.low, 1);
        if (mpfr_sgn(out.high) < 0) mpfr_set_zero(out.high, 1);
        return out;
    }

    static Interval max(const Interval& a, const Interval& b) {
        Interval out;
        mpfr_max(out.low, a.low, b.low, MPFR_RNDD);
        mpfr_max(out.high, a.high, b.high, MPFR_RNDU);
        return out;
    }

    // x^r for x ≥ 0 and r > 0, over all x and r of the intervals.
    Interval power(const Rational& exponent) const {
        const Interval r(exponent);
        const bool less = mpfr_cmp_ui(low, 1) < 0, small = mpfr_cmp_ui(high, 1) < 0;
        Interval out;
        mpfr_pow(out.low, low, less ? r.high : r.low, MPFR_RNDD);
        mpfr_pow(out.high, high, small ? r.low : r.high, MPFR_RNDU);
        return out;
    }

    // −t ln t for 0 ≤ t ≤ 1.
    Interval entropy() const {
        if (mpfr_sgn(high) == 0) return {};
        Interval size;
        mpfr_log(size.low, high, MPFR_RNDU);
        mpfr_log(size.high, low, MPFR_RNDD);
        mpfr_neg(size.low, size.low, MPFR_RNDD);
        mpfr_neg(size.high, size.high, MPFR_RNDU);
        return *this * size.positive();
    }

    bool surely_at_least(const Rational& x) const {
        return !mpfr_nan_p(low) && mpfr_cmp_q(low, x.get_mpq_t()) >= 0;
    }
    bool surely_below(const Rational& x) const {
        return !mpfr_nan_p(high) && mpfr_cmp_q(high, x.get_mpq_t()) < 0;
    }
    bool surely_at_most(const Rational& x) const {
        return !mpfr_nan_p(high) && mpfr_cmp_q(high, x.get_mpq_t()) <= 0;
    }
    bool surely_above(const Rational& x) const {
        return !mpfr_nan_p(low) && mpfr_cmp_q(low, x.get_mpq_t()) > 0;
    }
    // The largest multiple of 2^e that is not above; how many more cover the interval.
    Integer below(Integer& multiple, long e) const {
        mpfr_t scaled_end;
        mpfr_init2(scaled_end, bits);
        Integer top;
        mpfr_mul_2si(scaled_end, low, -e, MPFR_RNDD);
        mpfr_get_z(multiple.get_mpz_t(), scaled_end, MPFR_RNDD);
        mpfr_mul_2si(scaled_end, high, -e, MPFR_RNDU);
        mpfr_get_z(top.get_mpz_t(), scaled_end, MPFR_RNDU);
        mpfr_clear(scaled_end);
        return top - multiple;
    }

    bool zero() const { return mpfr_zero_p(low) && mpfr_zero_p(high); }

    // A number in the middle, or nearly: any scale will do for a norm.
    Interval point() const {
        Interval out(*this);
        mpfr_set(out.low, high, MPFR_RNDD);
        return out;
    }

  private:
    mpfr_t low, high;

    template <typename F>
    Interval each(F f) const {
        Interval out;
        f(out.low, low, MPFR_RNDD);
        f(out.high, high, MPFR_RNDU);
        return out;
    }
};

using Intervals = std::vector<Interval>;

// ‖x‖_r for x ≥ 0, relative to the largest entry.
inline Interval norm(const Intervals& x, const Exponent& r) {
    Interval top, sum;
    for (const Interval& a : x) top = Interval::max(top, a);
    if (r.infinite || top.zero()) return top;
    const Interval scale = top.point();
    for (const Interval& a : x)
        if (!a.zero()) sum += (a / scale).power(r.value);
    return scale * sum.power(1 / r.value);
}

inline Interval sum(const Intervals& x) {
    Interval out;
    for (const Interval& a : x) out += a;
    return out;
}
