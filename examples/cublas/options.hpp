/* Options of the C++ examples, as --name value. */
#ifndef EXAMPLES_OPTIONS_HPP
#define EXAMPLES_OPTIONS_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

class Arguments
{
  public:
    Arguments(const char *program, const char *usage) : program_(program), usage_(usage)
    {
    }
    /* A whole number, at least `least`. */
    void number(const char *name, int &value, int least)
    {
        known_[name] = [=, &value](const char *text) {
            char *end;
            long read = strtol(text, &end, 10);
            if (*text == '\0' || *end != '\0' || read < least || read > 1000000)
                wrong(std::string(name) + " takes a whole number from " + std::to_string(least) + " to 1000000, not '" + text +
                      "'");
            value = static_cast<int>(read);
        };
    }
    /* Anything. */
    void text(const char *name, std::string &value)
    {
        known_[name] = [&value](const char *text) { value = text; };
    }
    /* One of these words. */
    void word(const char *name, std::string &value, std::vector<std::string> words)
    {
        known_[name] = [=, &value](const char *text) {
            std::string all;
            for (const std::string &one : words) {
                all += (all.empty() ? "" : ", ") + one;
                if (one == text)
                    value = one;
            }
            if (value != text)
                wrong(std::string(name) + " takes one of: " + all + "; not '" + text + "'");
        };
    }
    /* Ends the program if something is wrong: exit status 2. */
    void read(int argc, char **argv) const
    {
        for (int i = 1; i < argc; i += 2) {
            if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
                fputs(usage_, stdout);
                exit(0);
            }
            auto found = known_.find(argv[i]);
            if (found == known_.end())
                wrong(std::string("there is no option '") + argv[i] + "'");
            if (i + 1 == argc)
                wrong(std::string(argv[i]) + " takes a value");
            found->second(argv[i + 1]);
        }
    }

  private:
    [[noreturn]] void wrong(const std::string &what) const
    {
        fprintf(stderr, "%s: %s\n%s", program_, what.c_str(), usage_);
        exit(2);
    }

    const char *program_, *usage_;
    std::map<std::string, std::function<void(const char *)>> known_;
};

#endif
