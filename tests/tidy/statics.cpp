// SPDX-License-Identifier: Apache-2.0
// Finds variables that outlive a call and can change. It reads C++ as statements and braces, which
// is enough for code in our format: a reader of declarations, not a compiler.
#include <regex>

#include "checks.hpp"
#include "lines.hpp"

namespace servecast::tidy {
namespace {

enum class Scope { Namespace, Class, Function, Initialiser };

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool has_word(const std::string& text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_character(text[at - 1])) &&
        (end == text.size() || !is_word_character(text[end])))
      return true;
  }
  return false;
}

std::string without_template_arguments(const std::string& text) {
  std::string result;
  int depth = 0;
  for (const char c : text) {
    if (c == '<') ++depth;
    if (depth == 0) result += c;
    if (c == '>' && depth > 0) --depth;
  }
  return result;
}

// The part of a declaration in front of its initialiser.
std::string declarator(const std::string& statement) {
  return statement.substr(0, statement.find('='));
}

bool is_constant(const std::string& statement) {
  const std::string head = without_template_arguments(declarator(statement));
  if (has_word(head, "constexpr") || has_word(head, "consteval")) return true;
  const std::size_t star = head.find_last_of("*&");
  if (star != std::string::npos && head[star] == '*') return has_word(head.substr(star), "const");
  return has_word(head, "const");
}

bool declares_variable(const std::string& statement, Scope scope) {
  static const std::regex not_a_variable(
      "^\\s*(using|typedef|namespace|template|friend|static_assert|concept|class|struct|enum|union|"
      "return|goto|public|private|protected|case|default|__extension__|extern\\s+\"|#)"
      "|\\boperator\\b|\\brequires\\b");
  const std::string head = without_template_arguments(declarator(statement));
  if (std::regex_search(head, not_a_variable)) return false;
  const bool parenthesis = head.find('(') != std::string::npos;
  if (scope == Scope::Function) return true;
  return !parenthesis && words_of(head).size() >= 2;
}

bool is_suspect(const std::string& statement, Scope scope) {
  if (scope == Scope::Initialiser) return false;
  const bool lasting =
      has_word(declarator(statement), "static") || has_word(declarator(statement), "thread_local");
  if (scope != Scope::Namespace && !lasting) return false;
  return declares_variable(statement, scope) && !is_constant(statement);
}

Scope scope_of(const std::string& before_brace, Scope outer) {
  const std::string head = without_template_arguments(before_brace);
  if (has_word(head, "namespace") || head.find("extern \"") != std::string::npos)
    return Scope::Namespace;
  if (outer == Scope::Initialiser) return Scope::Initialiser;
  const bool equals = head.find('=') != std::string::npos;
  if (has_word(head, "enum")) return Scope::Initialiser;
  static const std::regex record(R"(\b(class|struct|union)\b[^()]*$)");
  if (!equals && std::regex_search(head, record)) return Scope::Class;
  if (outer == Scope::Function || trimmed(head).empty()) return Scope::Function;
  if (head.find('(') != std::string::npos) return Scope::Function;
  return Scope::Initialiser;
}

bool is_access(const std::string& text) {
  return text == "public:" || text == "private:" || text == "protected:";
}

class Reader {
 public:
  explicit Reader(const File& file) : file_(file), raw_(lines_of(file.text)) {}

  Findings read() {
    bool continued = false;
    for (const std::string& line : lines_of(code_only(file_.text))) {
      const bool directive = continued || trimmed(line).starts_with("#");
      continued = directive && trimmed(line).ends_with("\\");
      if (!directive)
        for (const char c : line) take(c);
      take('\n');
    }
    return std::move(findings_);
  }

 private:
  void take(char c) {
    if (c == '\n') ++line_;
    switch (c) {
      case '(':
        ++parentheses_;
        break;
      case ')':
        --parentheses_;
        break;
      default:
        break;
    }
    if (parentheses_ > 0 && c != '{' && c != '}') return append(c);
    switch (c) {
      case ';':
        end_statement();
        break;
      case '{':
        open_brace();
        break;
      case '}':
        close_brace();
        break;
      case ':':
        append(c);
        if (is_access(trimmed(statement_))) statement_.clear();
        break;
      default:
        append(c);
    }
  }

  void append(char c) {
    if (trimmed(statement_).empty()) {
      if (c == ' ' || c == '\n') return;
      first_line_ = line_;
    }
    statement_ += c == '\n' ? ' ' : c;
  }

  void end_statement() {
    judge();
    statement_.clear();
    judged_ = false;
  }

  void judge() {
    if (judged_ || trimmed(statement_).empty() || !is_suspect(statement_, scopes_.back())) return;
    const std::string& line = raw_[std::size_t(first_line_) - 1];
    if (line.find("tidy: mutable-static (") != std::string::npos) return;
    findings_.push_back({file_.path, first_line_, "mutable-static",
                         trimmed(declarator(statement_)) + " can change and outlives a call"});
  }

  struct Outer {
    std::string statement;
    int first_line, parentheses;
    bool judged;
  };

  void open_brace() {
    const Scope scope = parentheses_ > 0 ? Scope::Function : scope_of(statement_, scopes_.back());
    const bool initialiser = scope == Scope::Initialiser;
    judge();  // what a brace begins is a variable, too, when it reads like one
    outer_.push_back({initialiser || parentheses_ > 0 ? statement_ : std::string(), first_line_,
                      parentheses_, true});
    scopes_.push_back(scope);
    statement_.clear();
    parentheses_ = 0;
    judged_ = false;
  }

  void close_brace() {
    if (scopes_.size() == 1) return;
    scopes_.pop_back();
    statement_ = outer_.back().statement;
    first_line_ = outer_.back().first_line;
    parentheses_ = outer_.back().parentheses;
    judged_ = outer_.back().judged;
    outer_.pop_back();
    if (statement_.empty()) judged_ = false;
  }

  const File& file_;
  std::vector<std::string> raw_;
  std::vector<Scope> scopes_{Scope::Namespace};
  std::vector<Outer> outer_;
  std::string statement_;
  int line_ = 1, first_line_ = 1, parentheses_ = 0;
  bool judged_ = false;
  Findings findings_;
};

}  // namespace

Findings check_mutable_statics(const File& file) {
  if (!is_cpp(file.path)) return {};
  return Reader(file).read();
}

}  // namespace servecast::tidy
