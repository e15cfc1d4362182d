// certificate-checker FILE ...: proves the bounds of certificate files, or refuses them.
//
// Written from docs/certificate-format.md alone, in another language and another
// arithmetic than mklopt/certificates/checker.py. One line for each file. Exit code 0: all
// are proved; 2: one is not, or a usage error. With --list FILE, the files are the lines
// of FILE.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <new>

#include "check.hpp"

static const size_t MAX_BYTES = size_t(1) << 27, MAX_MARKS = 1000000;

static std::string contents(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    demand(file >= 0, "it cannot be opened");
    struct stat facts;
    const bool regular = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
    std::string out;
    if (regular && static_cast<size_t>(facts.st_size) <= MAX_BYTES) {
        out.resize(static_cast<size_t>(facts.st_size) + 1);
        size_t count = 0;
        for (ssize_t more; count < out.size(); count += static_cast<size_t>(more))
            if ((more = read(file, &out[count], out.size() - count)) <= 0) break;
        out.resize(count);
    }
    close(file);
    demand(regular, "it is not a regular file");
    demand(!out.empty(), "it is empty, or has more than 2^27 bytes");
    demand(out.size() <= MAX_BYTES, "it has more than 2^27 bytes");
    return out;
}

static std::string_view body_of(std::string_view file) {
    const size_t head = sizeof "mklopt certificate 4 " - 1, end = head + 64;
    bool known = file.size() > end && file[end] == '\n';
    const std::string_view start = file.substr(0, std::min(head, file.size()));
    bool listed = false;
    for (const char* version : {"1", "2", "3", "4"})
        listed = listed || start == std::string("mklopt certificate ") + version + " ";
    known = known && listed;
    demand(known, "it does not begin as a certificate file");
    const std::string_view body = file.substr(end + 1);
    demand(sha256(body) == file.substr(head, 64), "the hash of the file is another one");
    size_t marks = 0;
    for (const char c : body) {
        marks += c == '[' || c == '{' || c == ',';
        demand(static_cast<unsigned char>(c) < 0x80, "it has characters that no key has");
    }
    demand(marks <= MAX_MARKS, "it has more than 1,000,000 of [, { and ,");
    return body;
}

static std::string proved(const std::string& path) {
    const std::string file = contents(path);
    const Value value = Parser(body_of(file)).document();
    const Claim claim(value);
    Checker(claim).prove();
    const auto bound = [&](const char* name) {
        for (const auto& [key, entry] : value.entries)
            if (key == name)
                return entry.kind == Value::Float ? shortest(entry.number)
                                                  : std::string(entry.text);
        return std::string();
    };
    return "proved: " + bound("lower") + " ≤ f* ≤ " + bound("upper") + " for " +
           claim.loss.name + ", " + claim.formulation.name + ", n = " +
           std::to_string(claim.n) + ", M = " + std::to_string(claim.M()) + ", problem " +
           claim.problem;
}

static std::string verdict(const std::string& path, bool& good) {
    try {
        return proved(path);
    } catch (const Refused& reason) {
        good = false;
        return std::string("refused: ") + reason.what();
    } catch (const std::bad_alloc&) {
        good = false;
        return "refused: it needs more memory than there is";
    }
}

int main(int count, char** words) {
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    std::vector<std::string> paths(words + 1, words + count);
    if (paths.size() == 2 && paths[0] == "--list") {
        std::ifstream list(paths[1]);
        paths.clear();
        for (std::string line; std::getline(list, line);) paths.push_back(line);
    }
    if (paths.empty() || paths[0].substr(0, 2) == "--") {
        std::cerr << "usage: certificate-checker FILE ... | --list FILE\n";
        return 2;
    }
    bool all = true;
    for (const std::string& path : paths) {
        bool good = true;
        const std::string line = verdict(path, good);
        std::cout << (paths.size() > 1 ? path + ": " : "") << line << "\n";
        all = all && good;
    }
    return all ? 0 : 2;
}
