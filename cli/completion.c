// completion.c — weir completion: completion for a shell, made from the verbs' help texts, so that
// it knows what they know.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

// Whether "--name" at |text|, which ends at |end|, takes a value: "--name=FILE", "--feed
// NAME=VALUE".
static bool takes_value(const char* end) {
  return end[0] == '=' ||
         (end[0] == ' ' && isupper((unsigned char)end[1]) && isupper((unsigned char)end[2]));
}

// Prints the option at |text| ("--name") and returns where it ends.
static const char* print_option(const char* text) {
  const char* end = text + 2;
  while (islower((unsigned char)*end) || isdigit((unsigned char)*end) || *end == '-') ++end;
  if (end > text + 2) printf("%.*s%s ", (int)(end - text), text, takes_value(end) ? "=" : "");
  return end;
}

// Prints the options of one line of a help text: all of a line on usage; those that it explains
// begin it, after two spaces, and end where two more do; others are in brackets.
static void print_line_options(const char* line, const char* end) {
  bool is_usage = strncmp(line, "usage: ", 7) == 0 || strncmp(line, "       weir ", 12) == 0;
  bool is_list = is_usage || strncmp(line, "  --", 4) == 0;
  for (const char* at = line + (is_list ? 2 : 0); at < end; ++at) {
    bool is_gap = !is_usage && at[0] == ' ' && at[1] == ' ';
    if (is_list && is_gap) is_list = false;
    bool begins = at > line && (at[-1] == '[' || (is_list && at[-1] == ' '));
    if (begins && strncmp(at, "--", 2) == 0) at = print_option(at) - 1;
  }
}

static void print_options(const char* help) {
  for (const char* line = help; *line;) {
    const char* end = line + strcspn(line, "\n");
    print_line_options(line, end);
    line = *end ? end + 1 : end;
  }
}

static int print_bash(void) {
  fputs(
      "# Completion of the weir command in bash: eval \"$(weir completion bash)\"\n"
      "_weir() {\n"
      "  local words current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"",
      stdout);
  for (const verb_t* const* verb = all_verbs(); *verb; ++verb) printf("%s ", (*verb)->name);
  fputs(
      "--help --version\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case $verb in\n",
      stdout);
  for (const verb_t* const* verb = all_verbs(); *verb; ++verb) {
    printf("    %s) words=\"", (*verb)->name);
    print_options((*verb)->help);
    fputs("\" ;;\n", stdout);
  }
  // What no word is proposed for is a file's name, which the shell completes.
  fputs(
      "  esac\n"
      "  case $current in\n"
      "    -*) words=\"$words --help --plugin=\" ;;\n"
      "    *) words=\"\"\n"
      "       case $verb in\n"
      "         ops) words=$(\"${COMP_WORDS[0]}\" ops 2>/dev/null | cut -d ' ' -f 1) ;;\n"
      "         completion) words=bash ;;\n"
      "       esac ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\" | sort -u))\n"
      "  if [ \"${#COMPREPLY[@]}\" -eq 1 ] && [ \"${COMPREPLY[0]%=}\" != \"${COMPREPLY[0]}\" ]; "
      "then\n"
      "    compopt -o nospace\n"
      "  fi\n"
      "}\n"
      "complete -o default -F _weir weir\n",
      stdout);
  return EXIT_OK;
}

static int run_completion(int argc, char** argv) {
  if (argc != 1) return usage_error(&verb_completion, "needs the name of one shell");
  if (strcmp(argv[0], "bash") != 0)
    return usage_error(&verb_completion, "unknown shell '%s'", argv[0]);
  return print_bash();
}

const verb_t verb_completion = {
    .name = "completion",
    .summary = "print completion of this command for a shell",
    .help =
        "usage: weir completion bash\n"
        "Prints what makes bash complete verbs, options, names of ops and files:\n\n"
        "  eval \"$(weir completion bash)\"\n\n"
        "An installed package does so by itself, where the package bash-completion is.\n",
    .run = run_completion};
