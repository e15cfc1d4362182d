// What a file states, read by the tables of docs/certificate-format.md.
//
// All that is not in the tables is refused. Arrays of kernels stay base64 until they are
// used, one at a time.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "exact.hpp"
#include "formulations.hpp"
#include "json.hpp"
#include "losses.hpp"
#include "rules.hpp"

using Numbers = std::vector<double>;

enum class Kind {
    Exponent, Positive, NonNegative, Unit, Weights, Prior, Groups, Matrix,  // of V and Ω
    Sparse, Bounds, Cones,                                                  // of a conic Ω
    Degree, Columns, Divisors                                               // of kernels
};
using Parameters = std::vector<std::pair<std::string, Kind>>;

inline const std::map<std::string, Parameters> LOSSES = {
    {"hinge", {}},
    {"one_class", {}},
    {"logistic", {}},
    {"multiclass_hinge", {}},
    {"multinomial", {}},
    {"squared", {}},
    {"eps_insensitive", {{"eps", Kind::NonNegative}}},
    {"huber", {{"delta", Kind::Positive}}},
    {"quantile", {{"tau", Kind::Unit}}},
};

inline const std::map<std::string, Parameters> FORMULATIONS = {
    {"GroupLasso", {}},
    {"BlockL1", {}},
    {"BlockNorm", {{"q", Kind::Exponent}}},
    {"LpNorm", {{"p", Kind::Exponent}}},
    {"Ivanov", {{"p", Kind::Exponent}}},
    {"WeightedLpNorm", {{"p", Kind::Exponent}, {"prior", Kind::Prior}}},
    {"Tikhonov", {{"p", Kind::Exponent}, {"mu", Kind::Positive}}},
    {"BlockPower", {{"q", Kind::Exponent}}},
    {"ElasticNet", {{"l1_ratio", Kind::Unit}}},
    {"SparseBlockNorm", {{"q", Kind::Exponent}, {"a", Kind::NonNegative}}},
    {"FixedWeights", {{"theta", Kind::Weights}}},
    {"VSKL", {{"groups", Kind::Groups}, {"q", Kind::Exponent}}},
    {"Composite", {{"groups", Kind::Groups}, {"r", Kind::Exponent}, {"s", Kind::Exponent}}},
    {"NonIsotropic", {{"E", Kind::Matrix}}},
    {"Conic", {{"A", Kind::Sparse}, {"b", Kind::Bounds}, {"cones", Kind::Cones}}},
};

inline const std::map<std::string, Parameters> RULES = {
    {"gaussian",
     {{"rate", Kind::NonNegative}, {"columns", Kind::Columns}, {"divisors", Kind::Divisors}}},
    {"power",
     {{"degree", Kind::Degree},
      {"offset", Kind::NonNegative},
      {"columns", Kind::Columns},
      {"divisors", Kind::Divisors}}},
};
inline const long MAX_DEGREE = 100;

// The largest exponents that are not 10^15.
inline const std::map<std::string, long> MOST = {
    {"BlockPower q", 1000000}, {"SparseBlockNorm q", 2}, {"Composite r", 2}, {"Composite s", 2}};

// ---- values of JSON ------------------------------------------------------------------

inline Integer whole(const Value& value, const std::string& what) {
    demand(value.kind == Value::Integer, what + " is not an integer");
    return Integer(std::string(value.text));
}

inline Rational number(const Value& value, const std::string& what) {
    const bool known = value.kind == Value::Integer || value.kind == Value::Float;
    demand(known && value.number - value.number == 0, what + " is not a finite number");
    if (value.kind == Value::Float) return rational(value.number);
    return Rational(whole(value, what));
}

inline std::string_view text(const Value& value, const std::string& what) {
    demand(value.kind == Value::Text, what + " is not a text");
    return value.characters();
}

inline bool truth(const Value& value, const std::string& what) {
    demand(value.kind == Value::Bool, what + " is neither true nor false");
    return value.truth;
}

inline const std::vector<Value>& list(const Value& value, const std::string& what) {
    demand(value.kind == Value::List, what + " is not a list");
    return value.items;
}

inline Numbers array(const Value& value, size_t size, const std::string& what) {
    Numbers out = floats(from_base64(text(value, what)));
    demand(out.size() == size, what + " has another length");
    return out;
}

inline Rationals rationals(const Numbers& values) {
    Rationals out;
    for (const double x : values) out.push_back(rational(x));
    return out;
}

// The entries of an object that has these keys and no other.
inline std::map<std::string, const Value*> object(const Value& value,
                                                  const std::set<std::string>& keys,
                                                  const std::string& what) {
    demand(value.kind == Value::Object, what + " is not an object");
    std::map<std::string, const Value*> out;
    for (const auto& [key, entry] : value.entries) {
        demand(keys.count(key), what + " has an unknown key");
        out[key] = &entry;
    }
    for (const std::string& key : keys) demand(out.count(key), what + " has no key " + key);
    return out;
}

// The JSON text of a value as the hash of the problem has it.
inline std::string written(const Value& value) {
    if (value.kind == Value::Integer) return Integer(std::string(value.text)).get_str();
    if (value.kind == Value::Float) return shortest(value.number);
    if (value.kind == Value::Text) return "\"" + std::string(value.characters()) + "\"";
    std::string out;
    for (const Value& item : value.items) out += (out.empty() ? "" : ", ") + written(item);
    return "[" + out + "]";
}

// ---- parameters ----------------------------------------------------------------------

// The closest fraction with a denominator up to 1000, if it rounds to x; else x.
inline Rational fraction(double x) {
    const Rational exact = rational(x);
    Rational best = exact, off = 2;
    for (long d = 1; d <= 1000; ++d) {
        Integer n;
        const Rational times = exact * d + Rational(1, 2);
        mpz_fdiv_q(n.get_mpz_t(), times.get_num_mpz_t(), times.get_den_mpz_t());
        Rational near(n, d);
        near.canonicalize();
        const Rational distance = abs(near - exact);
        if (distance < off) best = near, off = distance;
    }
    mpfr_t rounded;
    mpfr_init2(rounded, 53);
    mpfr_set_q(rounded, best.get_mpq_t(), MPFR_RNDN);
    const bool same = mpfr_get_d(rounded, MPFR_RNDN) == x;
    mpfr_clear(rounded);
    return same ? best : exact;
}

inline Exponent exponent(const Value& value, const std::string& name) {
    if (value.kind == Value::Float && value.number - value.number != 0) {
        demand(!MOST.count(name), name + " is out of range");
        return {true, 0};
    }
    const Rational x = number(value, name);
    const long most = MOST.count(name) ? MOST.at(name) : 1000000000000000;
    demand(1 <= x && x <= most, name + " is out of range");
    return {false, value.kind == Value::Float ? fraction(value.number) : x};
}

class FormulationReader {
  public:
    FormulationReader(const std::string& name, size_t kernels) : M(kernels) {
        out.name = name;
    }

    void read(const std::string& key, Kind kind, const Value& value) {
        const std::string what = out.name + " " + key;
        if (kind == Kind::Exponent) {
            out.exponents[key] = exponent(value, what);
        } else if (kind == Kind::Groups) {
            groups(value);
        } else if (kind == Kind::Matrix) {
            matrix(value);
        } else if (kind == Kind::Sparse) {
            for (const Value& item : list(value, what)) entry(item);
        } else if (kind == Kind::Bounds) {
            for (const Value& item : list(value, what)) out.conic.b.push_back(number(item, what));
        } else if (kind == Kind::Cones) {
            for (const Value& item : list(value, what)) cone(item);
            out.conic.check(M);
        } else if (kind == Kind::Weights || kind == Kind::Prior) {
            for (const Value& item : list(value, what)) {
                out.per_kernel.push_back(number(item, what));
                const int sign = sgn(out.per_kernel.back());
                demand(sign > 0 || (sign == 0 && kind == Kind::Weights),
                       what + " is out of range");
            }
            demand(out.per_kernel.size() == M, what + " has another length");
        } else {
            out.numbers[key] = scalar(value, kind, what);
        }
    }

    static Rational scalar(const Value& value, Kind kind, const std::string& what) {
        const Rational x = number(value, what);
        demand(x > 0 || (x == 0 && kind != Kind::Positive), what + " is out of range");
        demand(x <= 1 || kind != Kind::Unit, what + " is out of range");
        return x;
    }

    Formulation out;

  private:
    const size_t M;

    void entry(const Value& value) {
        const auto& parts = list(value, "an entry of A");
        demand(parts.size() == 3, "an entry of A has other parts");
        Integer place[2];
        for (int k = 0; k < 2; ++k) {
            place[k] = whole(parts[k], "a row or column of A");
            demand(0 <= place[k] && place[k] < 1000000, "a row or column is out of range");
        }
        out.conic.A.push_back({place[0].get_ui(), place[1].get_ui(), number(parts[2], "A")});
    }

    void cone(const Value& value) {
        const auto& parts = list(value, "a cone");
        demand(parts.size() == 2, "a cone has other parts");
        Cone made{std::string(text(parts[0], "a cone")), 3, 0};
        const Rational given = number(parts[1], "a cone");
        if (made.name == "power") {
            demand(0 < given && given < 1, "the power of a cone is out of range");
            made.power = given;
        } else if (made.name == "exponential") {
            demand(given == 3, "an exponential cone has 3 rows");
        } else {
            const bool known = made.name == "zero" || made.name == "nonnegative" ||
                               made.name == "second_order";
            const Integer rows = whole(parts[1], "a cone");
            demand(known && 0 < rows && rows <= 1000000, "a cone is not known, or its size");
            made.size = rows.get_ui();
        }
        out.conic.cones.push_back(made);
    }

    void groups(const Value& value) {
        std::vector<bool> seen(M);
        size_t count = 0;
        for (const Value& group : list(value, "groups")) {
            out.groups.emplace_back();
            for (const Value& item : list(group, "a group")) {
                const Integer m = whole(item, "a kernel of a group");
                demand(0 <= m && m < M && !seen[m.get_ui()], "groups are no partition");
                seen[m.get_ui()] = true;
                out.groups.back().push_back(m.get_ui());
                ++count;
            }
            demand(!out.groups.back().empty(), "a group is empty");
        }
        demand(count == M, "groups are no partition");
    }

    void matrix(const Value& value) {
        const auto& rows = list(value, "E");
        demand(rows.size() == M, "E has another size");
        for (const Value& row : rows) {
            out.E.emplace_back();
            bool zero = true;
            for (const Value& item : list(row, "a row of E")) {
                out.E.back().push_back(number(item, "an entry of E"));
                zero = zero && out.E.back().back() == 0;
            }
            demand(out.E.back().size() == M && !zero, "E has another size or a row of zeros");
        }
        for (size_t i = 0; i < M; ++i)
            for (size_t j = 0; j < i; ++j)
                demand(out.E[i][j] == out.E[j][i], "E is not symmetric");
    }
};

// ---- the claim -----------------------------------------------------------------------

struct Claim {
    size_t n = 0, k = 1;
    bool bias = false, factors = false, classes = false;
    std::vector<std::string_view> kernels;  // base64, if there are no points
    std::vector<Rule> rules;                // else the rules of kernels
    std::vector<Numbers> points;            // their features
    Rationals shift, y, C;
    Loss loss;
    Formulation formulation;
    std::string problem;
    Rational lower, upper;

    Dyadics alpha;  // n·k integers, sample after sample
    Rational shrink;
    Rationals slack;
    std::vector<Integer> multiplier, epigraph;  // of a conic Ω

    Rationals primal_bias;
    Rational stretch;
    enum { Weights, Coefficients, Features } point = Weights;
    Numbers theta;
    std::vector<Numbers> parts;  // coefficients or features of every kernel
    Rationals direction;

    explicit Claim(const Value& value) {
        std::set<std::string> keys = {"problem", "loss",  "formulation", "bias",  "factors",
                                      "kernels", "shift", "y",           "C",     "lower",
                                      "upper",   "dual",  "primal"};
        for (const auto& entry : value.entries)
            if (entry.first == "points") keys.insert("points");
        const auto given = object(value, keys, "the claim");
        read_data(given);
        const std::string loss_text = read_loss(*given.at("loss"));
        const std::string formulation_text = read_formulation(*given.at("formulation"));
        read_labels();
        check_hash(given, loss_text, formulation_text);
        lower = number(*given.at("lower"), "lower");
        upper = number(*given.at("upper"), "upper");
        demand(lower <= upper, "lower is above upper");
        read_dual(*given.at("dual"));
        read_primal(*given.at("primal"));
    }

    size_t M() const { return shift.size(); }

    // The entries of a kernel, or of its factor.
    Numbers entries(size_t m) const {
        Numbers out = floats(from_base64(kernels[m]));
        const bool fits = factors ? !out.empty() && out.size() % n == 0
                                  : out.size() == n * (n + 1) / 2;
        demand(fits, "kernel " + std::to_string(m) + " has another size");
        return out;
    }

  private:
    using Given = std::map<std::string, const Value*>;

    void read_data(const Given& given) {
        problem = std::string(text(*given.at("problem"), "problem"));
        bias = truth(*given.at("bias"), "bias");
        factors = truth(*given.at("factors"), "factors");
        const auto& all = list(*given.at("kernels"), "kernels");
        y = rationals(floats(from_base64(text(*given.at("y"), "y"))));
        n = y.size();
        demand(n > 0 && !all.empty(), "there are no samples or no kernels");
        C = rationals(array(*given.at("C"), n, "C"));
        shift = rationals(array(*given.at("shift"), all.size(), "shift"));
        if (given.count("points")) {
            demand(!factors, "factors have no points");
            for (const Value& feature : list(*given.at("points"), "points"))
                points.push_back(array(feature, n, "a feature"));
        }
        for (const Value& kernel : all) {
            if (given.count("points"))
                rule_texts += read_rule(kernel);
            else
                kernels.push_back(text(kernel, "a kernel"));
        }
        for (const Rational& x : C) demand(x > 0, "C is not positive");
        for (const Rational& x : shift) demand(x >= 0, "a shift is negative");
    }

    // The name, the parameters and their JSON text of a loss or formulation.
    template <typename Read>
    static std::string read_terms(const Value& value, const std::map<std::string, Parameters>& all,
                                  const std::string& what, std::string& name, Read read) {
        const auto& pair = list(value, what);
        demand(pair.size() == 2, "the " + what + " is not a name with parameters");
        name = std::string(text(pair[0], what));
        demand(all.count(name), "the " + what + " is not known");
        std::set<std::string> keys;
        for (const auto& [key, kind] : all.at(name)) keys.insert(key);
        const auto given = object(pair[1], keys, what);
        std::string out;
        for (const auto& [key, kind] : all.at(name)) {
            read(key, kind, *given.at(key));
            out += (out.empty() ? "\"" : ", \"") + key + "\": " + written(*given.at(key));
        }
        return "[\"" + name + "\", {" + out + "}]";
    }

    std::string rule_texts;

    std::string read_rule(const Value& value) {
        Rule rule;
        const auto read = [&](const std::string& key, Kind kind, const Value& item) {
            if (kind == Kind::NonNegative) {
                rule.number = FormulationReader::scalar(item, kind, key);
            } else if (kind == Kind::Degree) {
                const Integer degree = whole(item, key);
                demand(1 <= degree && degree <= MAX_DEGREE, "a degree is out of range");
                rule.degree = degree.get_ui();
            } else if (kind == Kind::Columns) {
                for (const Value& column : list(item, key)) {
                    const Integer c = whole(column, "a column");
                    demand(0 <= c && c < points.size(), "a column is out of range");
                    rule.columns.push_back(c.get_ui());
                }
            } else {
                for (const Value& step : list(item, key)) read_divisor(rule, step);
            }
        };
        const std::string out = read_terms(value, RULES, "kernel", rule.name, read);
        rules.push_back(rule);
        return out;
    }

    void read_divisor(Rule& rule, const Value& step) const {
        if (rule.rows.empty()) rule.rows.assign(n, 1);
        if (step.kind != Value::Text) {
            rule.common *= FormulationReader::scalar(step, Kind::Positive, "a divisor");
        } else {
            const Numbers r = array(step, n, "divisors");
            for (size_t i = 0; i < n; ++i) {
                demand(r[i] > 0, "a divisor is not positive");
                rule.rows[i] *= rational(r[i]);
            }
        }
    }

    std::string read_loss(const Value& value) {
        return read_terms(value, LOSSES, "loss", loss.name,
                          [&](const std::string& key, Kind kind, const Value& item) {
                              loss.parameter = FormulationReader::scalar(item, kind, key);
                          });
    }

    std::string read_formulation(const Value& value) {
        std::string name;
        read_terms_name(value, name);
        FormulationReader reader(name, M());
        const std::string out =
            read_terms(value, FORMULATIONS, "formulation", name,
                       [&](const std::string& key, Kind kind, const Value& item) {
                           reader.read(key, kind, item);
                       });
        formulation = reader.out;
        return out;
    }
    static void read_terms_name(const Value& value, std::string& name) {
        const auto& pair = list(value, "formulation");
        demand(!pair.empty(), "the formulation has no name");
        name = std::string(text(pair[0], "formulation"));
    }

    void read_labels() {
        const Labels labels = loss.labels();
        classes = labels == Labels::Classes;
        demand(!bias || loss.name != "one_class", "one_class has no bias");
        Rational top = 0;
        for (const Rational& label : y) {
            const bool one = label == 1, sign = one || label == -1;
            demand(labels != Labels::Ones || one, "a label is not 1");
            demand(labels != Labels::Signs || sign, "a label is not -1 or 1");
            demand(!classes || (label >= 0 && label.get_den() == 1), "a label is not a class");
            top = std::max(top, label);
        }
        if (!classes) return;
        demand(1 <= top && top < 1000000, "there is one class, or there are too many");
        k = top.get_num().get_ui() + 1;
    }

    void check_hash(const Given& given, const std::string& loss_text,
                    const std::string& formulation_text) const {
        Sha256 hash;
        const std::string version = rules.empty() ? "1" : "3";
        hash.update("[\"mklopt problem " + version + "\", " + std::to_string(M()) + ", " + std::to_string(n) +
                    (bias ? ", true]" : ", false]"));
        for (const std::string_view kernel : kernels) {
            const std::string bytes = from_base64(kernel);
            const size_t count = bytes.size() / 8;
            hash.update(factors ? "[" + std::to_string(n) + ", " + std::to_string(count / n) + "]"
                                : "[" + std::to_string(count) + "]");
            hash.update(bytes);
        }
        if (!rules.empty()) {
            hash.update(rule_texts);
            for (const Value& feature : list(*given.at("points"), "points"))
                hash.update(from_base64(text(feature, "a feature")));
        }
        for (const char* name : {"shift", "y", "C"})
            hash.update(from_base64(text(*given.at(name), name)));
        hash.update(loss_text);
        hash.update(formulation_text);
        demand(hash.hex() == problem, "the hash of the problem is another one");
    }

    static std::vector<Integer> integers_of(const Value& value, const std::string& what) {
        std::vector<Integer> out;
        for (const Value& item : list(value, what)) out.push_back(whole(item, what));
        return out;
    }

    void read_dual(const Value& value) {
        std::set<std::string> keys = {"integers", "exponent", "shrink"};
        const bool ellipsoid = formulation.name == "NonIsotropic";
        if (ellipsoid) keys.insert("slack");
        if (formulation.name == "Conic") keys.insert("multiplier");
        const auto given = object(value, keys, "dual");
        if (given.count("multiplier"))
            multiplier = integers_of(*given.at("multiplier"), "multiplier");
        const Integer e = whole(*given.at("exponent"), "exponent");
        demand(abs(e) <= 2200, "exponent is out of range");
        alpha.e = -e.get_si();
        const Integer most = Integer(1) << 2200;
        const auto& integers = list(*given.at("integers"), "integers");
        demand(integers.size() == n * k, "integers has another length");
        for (const Value& item : integers) {
            alpha.m.push_back(whole(item, "a dual variable"));
            demand(abs(alpha.m.back()) < most, "a dual variable is too large");
        }
        shrink = number(*given.at("shrink"), "shrink");
        demand(0 <= shrink && shrink <= 1, "shrink is out of range");
        if (!ellipsoid) return;
        slack = rationals(array(*given.at("slack"), M(), "slack"));
        for (const Rational& x : slack) demand(x >= 0, "slack is negative");
    }

    void read_primal(const Value& value) {
        demand(value.kind == Value::Object, "primal is not an object");
        std::string kind;
        for (const auto& entry : value.entries)
            if (entry.first == "weights" || entry.first == "coefficients" ||
                entry.first == "features") {
                demand(kind.empty(), "primal has two points");
                kind = entry.first;
            }
        demand(!kind.empty(), "primal has no point");
        std::set<std::string> keys = {"bias", "stretch", kind};
        if (formulation.name == "NonIsotropic") keys.insert("direction");
        if (formulation.name == "Conic") keys.insert("epigraph");
        const auto given = object(value, keys, "primal");
        if (given.count("epigraph"))
            epigraph = integers_of(*given.at("epigraph"), "epigraph");
        stretch = number(*given.at("stretch"), "stretch");
        if (classes)
            primal_bias = rationals(array(*given.at("bias"), k, "the bias"));
        else
            primal_bias = {number(*given.at("bias"), "the bias")};
        for (const Rational& b : primal_bias)
            demand(bias || b == 0, "there is a bias in a problem without one");
        if (keys.count("direction"))
            direction = rationals(array(*given.at("direction"), M(), "direction"));
        read_point(*given.at(kind), kind);
    }

    void read_point(const Value& value, const std::string& kind) {
        if (kind == "weights") {
            theta = array(value, M(), kind);
            for (const double x : theta) demand(x >= 0, "a weight is negative");
            return;
        }
        point = kind == "coefficients" ? Coefficients : Features;
        demand(point == Coefficients || factors, "features need factors");
        const auto& given = list(value, kind);
        demand(given.size() == M(), kind + " has another length");
        for (size_t m = 0; m < M(); ++m) {
            const size_t columns = point == Features ? entries(m).size() / n : n;
            parts.push_back(array(given[m], columns * k, kind));
        }
    }
};
