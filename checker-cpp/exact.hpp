// Exact numbers: floats are integers times a power of two, and stay so in sums and products.
//
// A Dyadics is a vector of integers m_i with one exponent: its entries are m_i 2^e.

#pragma once

#include <gmpxx.h>

#include <cmath>
#include <cstdint>
#include <vector>

using Integer = mpz_class;
using Rational = mpq_class;

inline Rational scaled(const Integer& m, long e) {
    Rational x(m);
    if (e >= 0)
        mpq_mul_2exp(x.get_mpq_t(), x.get_mpq_t(), static_cast<unsigned long>(e));
    else
        mpq_div_2exp(x.get_mpq_t(), x.get_mpq_t(), static_cast<unsigned long>(-e));
    return x;
}

struct Dyadics {
    std::vector<Integer> m;
    long e = 0;

    size_t size() const { return m.size(); }
    Rational at(size_t i) const { return scaled(m[i], e); }

    // The same numbers with a lower exponent.
    void lower_to(long exponent) {
        for (Integer& x : m) x <<= static_cast<unsigned long>(e - exponent);
        e = exponent;
    }
};

// x = mantissa 2^exponent, with an odd mantissa below 2^53 in size; 0 for 0.
struct Split {
    int64_t mantissa = 0;
    int exponent = 0;

    explicit Split(double x) {
        if (x == 0) return;
        mantissa = static_cast<int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
        const int zeros = __builtin_ctzll(static_cast<uint64_t>(mantissa));
        mantissa >>= zeros;
        exponent += zeros - 53;
    }
};

// The numbers of an array as mantissas, each shifted to the least exponent of all.
struct Entries {
    std::vector<int64_t> mantissa;
    std::vector<uint16_t> shift;
    long e = 0;

    explicit Entries(const std::vector<double>& values) {
        bool any = false;
        for (const double x : values) {
            if (x == 0) continue;
            const Split part(x);
            if (!any || part.exponent < e) e = part.exponent;
            any = true;
        }
        mantissa.reserve(values.size());
        shift.reserve(values.size());
        for (const double x : values) {
            const Split part(x);
            mantissa.push_back(part.mantissa);
            shift.push_back(static_cast<uint16_t>(part.mantissa ? part.exponent - e : 0));
        }
    }

    size_t size() const { return mantissa.size(); }

    // sum += entry i times a.
    void add_product(Integer& sum, size_t i, const Integer& a) const {
        static Integer product;
        const uint64_t size = static_cast<uint64_t>(std::abs(mantissa[i]));
        if (!size || a == 0) return;
        mpz_mul_ui(product.get_mpz_t(), a.get_mpz_t(), size);
        mpz_mul_2exp(product.get_mpz_t(), product.get_mpz_t(), shift[i]);
        if (mantissa[i] < 0)
            sum -= product;
        else
            sum += product;
    }

    Dyadics dyadics() const {
        Dyadics out{std::vector<Integer>(size()), e};
        for (size_t i = 0; i < size(); ++i) add_product(out.m[i], i, Integer(1));
        return out;
    }
};

inline Rational rational(double x) {
    const Split part(x);
    return scaled(Integer(static_cast<long>(part.mantissa)), part.exponent);
}

inline Rational inner(const Dyadics& a, const Dyadics& b) {
    Integer sum;
    for (size_t i = 0; i < a.size(); ++i)
        mpz_addmul(sum.get_mpz_t(), a.m[i].get_mpz_t(), b.m[i].get_mpz_t());
    return scaled(sum, a.e + b.e);
}

// sum += c a for a float c.
inline void add(Dyadics& sum, double c, const Dyadics& a) {
    const Split factor(c);
    if (!factor.mantissa) return;
    const long e = a.e + factor.exponent;
    if (e < sum.e) sum.lower_to(e);
    Integer product;
    for (size_t i = 0; i < a.size(); ++i) {
        product = a.m[i] * static_cast<long>(factor.mantissa);
        product <<= static_cast<unsigned long>(e - sum.e);
        sum.m[i] += product;
    }
}

// Lᵀa for a factor L with n rows.
inline Dyadics transposed_times(const Entries& L, const Dyadics& a) {
    const size_t n = a.size(), columns = L.size() / n;
    Dyadics out{std::vector<Integer>(columns), L.e + a.e};
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < columns; ++j)
            L.add_product(out.m[j], i * columns + j, a.m[i]);
    return out;
}

// L w for a factor L with one column for each entry of w.
inline Dyadics times(const Entries& L, const Dyadics& w) {
    const size_t columns = w.size(), n = L.size() / columns;
    Dyadics out{std::vector<Integer>(n), L.e + w.e};
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < columns; ++j)
            L.add_product(out.m[i], i * columns + j, w.m[j]);
    return out;
}

// K a for the upper triangle of a symmetric matrix K.
inline Dyadics symmetric_times(const Entries& K, const Dyadics& a) {
    const size_t n = a.size();
    Dyadics out{std::vector<Integer>(n), K.e + a.e};
    for (size_t i = 0, place = 0; i < n; ++i)
        for (size_t j = i; j < n; ++j, ++place) {
            K.add_product(out.m[i], place, a.m[j]);
            if (j > i) K.add_product(out.m[j], place, a.m[i]);
        }
    return out;
}
