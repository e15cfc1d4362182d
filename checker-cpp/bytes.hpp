// SHA-256 (FIPS 180-4), base64 (RFC 4648), little-endian float64, shortest decimals.

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"

class Sha256 {
  public:
    void update(std::string_view data) {
        length += data.size();
        while (!data.empty()) {
            const size_t part = std::min(data.size(), block.size() - filled);
            std::memcpy(block.data() + filled, data.data(), part);
            filled += part;
            data.remove_prefix(part);
            if (filled == block.size()) compress();
        }
    }

    std::string hex() {
        const uint64_t bits = 8 * length;
        update(std::string_view("\x80", 1));
        while (filled != 56) update(std::string_view("\0", 1));
        std::string end;
        for (int k = 7; k >= 0; --k) end += static_cast<char>(bits >> (8 * k));
        update(end);
        std::string out;
        for (const uint32_t word : state)
            for (int k = 28; k >= 0; k -= 4) out += "0123456789abcdef"[word >> k & 15];
        return out;
    }

  private:
    std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> block;
    size_t filled = 0;
    uint64_t length = 0;

    static uint32_t turn(uint32_t x, int k) { return x >> k | x << (32 - k); }

    void compress() {
        static const uint32_t K[64] = {
            0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
            0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
            0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
            0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
            0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
            0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
            0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
            0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
            0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
            0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
            0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
        uint32_t w[64];
        for (int t = 0; t < 16; ++t)
            w[t] = static_cast<uint32_t>(block[4 * t]) << 24 | block[4 * t + 1] << 16 |
                   block[4 * t + 2] << 8 | block[4 * t + 3];
        for (int t = 16; t < 64; ++t) {
            const uint32_t a = w[t - 15], b = w[t - 2];
            w[t] = (turn(b, 17) ^ turn(b, 19) ^ b >> 10) + w[t - 7] +
                   (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 16];
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (int t = 0; t < 64; ++t) {
            const uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                                 ((e & f) ^ (~e & g)) + K[t] + w[t];
            const uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                                 ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
        }
        const uint32_t more[8] = {a, b, c, d, e, f, g, h};
        for (int k = 0; k < 8; ++k) state[k] += more[k];
        filled = 0;
    }
};

inline std::string sha256(std::string_view data) {
    Sha256 hash;
    hash.update(data);
    return hash.hex();
}

inline std::string from_base64(std::string_view text) {
    static const std::array<signed char, 256> code = [] {
        std::array<signed char, 256> table;
        table.fill(-1);
        const std::string_view letters =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (size_t k = 0; k < letters.size(); ++k)
            table[static_cast<unsigned char>(letters[k])] = static_cast<signed char>(k);
        return table;
    }();
    size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
        ++padding;
    demand(text.size() % 4 == 0, "an array is not base64");
    std::string out;
    out.reserve(text.size() / 4 * 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool end = i >= text.size() - padding;
        const int value = end ? 0 : code[static_cast<unsigned char>(text[i])];
        demand(value >= 0, "an array is not base64");
        bits = bits << 6 | static_cast<uint32_t>(value);
        if (i % 4 != 3) continue;
        for (int k = 16; k >= 0; k -= 8) out += static_cast<char>(bits >> k);
    }
    out.resize(out.size() - padding);  // unused bits do not count
    return out;
}

// The finite float64 numbers of an array.
inline std::vector<double> floats(std::string_view data) {
    demand(data.size() % 8 == 0, "an array does not consist of float64 numbers");
    std::vector<double> out(data.size() / 8);
    for (size_t i = 0; i < out.size(); ++i) {
        uint64_t bits = 0;
        for (int k = 7; k >= 0; --k)
            bits = bits << 8 | static_cast<unsigned char>(data[8 * i + k]);
        std::memcpy(&out[i], &bits, 8);
        demand(out[i] - out[i] == 0, "an array has numbers that are not finite");
    }
    return out;
}

// The shortest decimal that gives the same float, written as 2.0, 1e-05 or 1.5e+16.
inline std::string shortest(double x) {
    if (x - x != 0) return "Infinity";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + 40, std::fabs(x),
                                   std::chars_format::scientific);
    const std::string_view written(buffer, end.ptr - buffer);
    const size_t e = written.find('e');
    std::string digits(1, written[0]);
    if (e > 1) digits += written.substr(2, e - 2);
    const int power = std::stoi(std::string(written.substr(e + 1)));
    const int count = static_cast<int>(digits.size());
    const std::string sign = std::signbit(x) ? "-" : "";
    if (power < -4 || power >= 16)
        return sign + digits[0] + (count > 1 ? "." + digits.substr(1) : "") + "e" +
               (power < 0 ? "-" : "+") + (std::abs(power) < 10 ? "0" : "") +
               std::to_string(std::abs(power));
    if (power < 0) return sign + "0." + std::string(-power - 1, '0') + digits;
    if (count <= power + 1) return sign + digits + std::string(power + 1 - count, '0') + ".0";
    return sign + digits.substr(0, power + 1) + "." + digits.substr(power + 1);
}
