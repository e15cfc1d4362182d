// JSON text, read strictly: every key once, every number within its limits.
//
// A literal without a point and an exponent is an exact integer of any size, every other
// number a float64. A certificate is ASCII throughout, so that other bytes are refused.

#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Why a file proves nothing: one sentence.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void demand(bool holds, const std::string& why) {
    if (!holds) throw Refused(why);
}

struct Value {
    enum Kind { Null, Bool, Integer, Float, Text, List, Object };
    Kind kind = Null;
    bool truth = false;
    double number = 0;
    std::string_view text;  // the digits of an integer, the characters of a text
    std::string unescaped;  // the characters of a text that had escapes
    bool escapes = false;
    std::vector<Value> items;
    std::vector<std::pair<std::string, Value>> entries;

    std::string_view characters() const { return escapes ? unescaped : text; }
};

class Parser {
  public:
    explicit Parser(std::string_view given) : s(given) {}

    Value document() {
        Value value = any(0);
        blank();
        demand(at == s.size(), "it is not well-formed JSON: text after the end");
        return value;
    }

  private:
    static constexpr int MAX_DEPTH = 16;      // the format has depth 5
    static constexpr size_t MAX_DIGITS = 1000;  // of one number

    std::string_view s;
    size_t at = 0;

    [[noreturn]] void malformed(const std::string& what) const {
        throw Refused("it is not well-formed JSON: " + what + " at byte " +
                      std::to_string(at));
    }
    char peek() const { return at < s.size() ? s[at] : '\0'; }
    void blank() {
        while (at < s.size() && (s[at] == ' ' || s[at] == '\n' || s[at] == '\r' ||
                                 s[at] == '\t'))
            ++at;
    }
    bool taken(std::string_view word) {
        if (s.substr(at, word.size()) != word) return false;
        at += word.size();
        return true;
    }
    void take(char c) {
        blank();
        if (peek() != c || at >= s.size()) malformed(std::string("no ") + c);
        ++at;
    }
    bool next(char c) {  // whether c comes next; if so it is taken
        blank();
        if (at >= s.size() || s[at] != c) return false;
        ++at;
        return true;
    }

    Value any(int depth) {
        blank();
        if (depth > MAX_DEPTH) malformed("nested too deeply");
        const char c = peek();
        if (c == '{') return object(depth);
        if (c == '[') return list(depth);
        Value value;
        if (c == '"') {
            value.kind = Value::Text;
            text(value);
        } else if (taken("null")) {
            value.kind = Value::Null;
        } else if (taken("true") || taken("false")) {
            value.kind = Value::Bool;
            value.truth = s[at - 2] == 'u';
        } else if (taken("Infinity")) {
            value.kind = Value::Float;
            value.number = 1 / 0.0;
        } else {
            number(value);
        }
        return value;
    }

    Value object(int depth) {
        Value value;
        value.kind = Value::Object;
        take('{');
        if (next('}')) return value;
        do {
            blank();
            if (peek() != '"') malformed("no key");
            Value key;
            text(key);
            for (const auto& entry : value.entries)
                demand(entry.first != key.characters(), "a key occurs twice");
            take(':');
            value.entries.emplace_back(std::string(key.characters()), any(depth + 1));
        } while (next(','));
        take('}');
        return value;
    }

    Value list(int depth) {
        Value value;
        value.kind = Value::List;
        take('[');
        if (next(']')) return value;
        do value.items.push_back(any(depth + 1));
        while (next(','));
        take(']');
        return value;
    }

    void text(Value& value) {
        const size_t start = ++at;
        while (at < s.size() && s[at] != '"' && s[at] != '\\') plain();
        if (peek() == '"') {
            value.text = s.substr(start, at++ - start);
            return;
        }
        value.unescaped = s.substr(start, at - start);
        while (peek() != '"') {
            if (at >= s.size()) malformed("a text without an end");
            if (s[at] == '\\') {
                ++at;
                value.unescaped += escaped();
            } else {
                value.unescaped += s[at];
                plain();
            }
        }
        ++at;
        value.escapes = true;
    }

    void plain() {
        if (static_cast<unsigned char>(s[at]) < 0x20) malformed("a control character");
        ++at;
    }

    std::string escaped() {
        static const std::string from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
        const char c = peek();
        if (at >= s.size()) malformed("a text without an end");
        ++at;
        if (const size_t place = from.find(c); place != from.npos)
            return std::string(1, to[place]);
        if (c != 'u') malformed("an unknown escape");
        unsigned code = 0;
        for (int digit = 0; digit < 4; ++digit, ++at) {
            const char h = peek();
            const bool decimal = '0' <= h && h <= '9';
            const bool letter = ('a' <= h && h <= 'f') || ('A' <= h && h <= 'F');
            if (!decimal && !letter) malformed("an unknown escape");
            code = 16 * code + (decimal ? h - '0' : (h | 32) - 'a' + 10);
        }
        return code < 0x80 ? std::string(1, static_cast<char>(code)) : "?";
    }

    size_t digits() {
        const size_t start = at;
        while ('0' <= peek() && peek() <= '9') ++at;
        if (at == start) malformed("no digit");
        return at - start;
    }

    void number(Value& value) {
        const size_t start = at;
        if (peek() == '-') ++at;
        const bool zero = peek() == '0';
        if (digits() > 1 && zero) malformed("a leading zero");
        value.kind = Value::Integer;
        if (peek() == '.') {
            ++at;
            value.kind = Value::Float;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at;
            value.kind = Value::Float;
            if (peek() == '+' || peek() == '-') ++at;
            digits();
        }
        value.text = s.substr(start, at - start);
        demand(value.text.size() <= MAX_DIGITS, "a number has too many characters");
        if (value.kind == Value::Float) {
            value.number = std::strtod(std::string(value.text).c_str(), nullptr);
            demand(value.number - value.number == 0, "a number is beyond float64");
        }
    }
};
