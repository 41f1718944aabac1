#include "formats.hpp"

#include <algorithm>
#include <string_view>

namespace command::describe {
namespace {

std::string joined(const std::vector<std::string> &words, const char *between)
{
	std::string out;
	for (const std::string &word : words)
		out += (out.empty() ? "" : between) + word;
	return out;
}

// With a backslash before each of `special`.
std::string guarded(std::string_view text, std::string_view special)
{
	std::string out;
	for (const char c : text) {
		if (special.find(c) != std::string_view::npos)
			out += '\\';
		out += c;
	}
	return out;
}

// As one word between single quotes, for bash and zsh.
std::string in_quotes(std::string_view text)
{
	std::string out = "'";
	for (const char c : text)
		out += c == '\'' ? std::string("'\\''") : std::string(1, c);
	return out + '\'';
}

std::vector<std::string> names_of(const std::vector<Argument> &options)
{
	std::vector<std::string> names;
	for (const Argument &option : options)
		names.insert(names.end(), option.names.begin(), option.names.end());
	return names;
}

std::vector<std::string> names_of(const std::vector<Words> &subcommands)
{
	std::vector<std::string> names;
	for (const Words &sub : subcommands)
		names.push_back(sub.name);
	return names;
}

bool takes_file(const Words &sub)
{
	return std::any_of(sub.positionals.begin(), sub.positionals.end(), [](const Argument &a) { return a.is_file(); });
}

// A subcommand takes the options of the command, too, but for --version.
std::vector<Argument> options_of(const Words &app, const Words &sub)
{
	std::vector<Argument> options = sub.options;
	for (const Argument &option : app.options)
		if (option.names.back() != "--version")
			options.push_back(option);
	return options;
}

// The cases in which the word before the cursor is an option that takes a value.
std::string bash_values(const std::string &where, const std::vector<Argument> &options)
{
	std::string out;
	for (const Argument &option : options) {
		if (option.value.empty())
			continue;
		for (const std::string &name : option.names) {
			out += '\t' + in_quotes(where + ',' + name) + ") ";
			if (option.is_file())
				out += "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); ";
			else if (!option.choices.empty())
				out += "mapfile -t COMPREPLY < <(compgen -W " + in_quotes(joined(option.choices, " ")) +
					   " -- \"$word\"); ";
			out += "return ;;\n";
		}
	}
	return out;
}

std::string bash_words(const std::string &where, const std::vector<std::string> &words)
{
	return '\t' + in_quotes(where) + ") words=" + in_quotes(joined(words, " ")) + " ;;\n";
}

std::string zsh_action(const Argument &argument)
{
	if (argument.is_file())
		return "_files";
	return argument.choices.empty() ? " " : '(' + joined(argument.choices, " ") + ')';
}

std::string zsh_options(const std::vector<Argument> &options, const std::string &indent)
{
	std::string out;
	for (const Argument &option : options) {
		for (const std::string &name : option.names) {
			std::string spec = (option.repeats ? "*" : "") + name;
			if (!option.value.empty())
				spec += name.substr(0, 2) == "--" ? "=" : "+";
			spec += '[' + guarded(option.description, "[]:\\") + ']';
			if (!option.value.empty())
				spec += ':' + guarded(option.value, ":\\") + ':' + zsh_action(option);
			out += indent + in_quotes(spec) + " \\\n";
		}
	}
	return out;
}

std::string fish_quotes(std::string_view text)
{
	return '\'' + guarded(text, "\\'") + '\'';
}

std::string fish_options(const std::string &condition, const std::vector<Argument> &options)
{
	std::string out;
	for (const Argument &option : options) {
		out += "complete -c doorbell -n " + condition;
		for (const std::string &name : option.names)
			out += name.substr(0, 2) == "--" ? " -l " + name.substr(2) : " -s " + name.substr(1);
		if (option.is_file())
			out += " -r -F";
		else if (!option.value.empty())
			out += " -x";
		if (!option.choices.empty())
			out += " -a " + fish_quotes(joined(option.choices, " "));
		out += " -d " + fish_quotes(option.description) + '\n';
	}
	return out;
}

} // namespace

std::string bash_completion(const Words &words)
{
	std::string values;
	std::vector<std::string> first = names_of(words.subcommands);
	for (const std::string &name : names_of(words.options))
		first.push_back(name);
	std::string lists = bash_words("", first);
	std::string files;
	for (const Words &sub : words.subcommands) {
		values += bash_values(sub.name, options_of(words, sub));
		lists += bash_words(sub.name, names_of(options_of(words, sub)));
		if (takes_file(sub))
			files += (files.empty() ? "" : "|") + sub.name;
	}
	return "# bash completion of doorbell; made from the command itself\n"
		   "_doorbell()\n"
		   "{\n"
		   "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} sub= words= i\n"
		   "\tCOMPREPLY=()\n"
		   "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		   "\t\tcase ${COMP_WORDS[i]} in\n"
		   "\t\t--dsn) ((i++)) ;;\n"
		   "\t\t" +
		   joined(names_of(words.subcommands), "|") +
		   ") sub=${COMP_WORDS[i]}; break ;;\n"
		   "\t\tesac\n"
		   "\tdone\n"
		   "\tcase $sub,$before in\n" +
		   bash_values("", words.options) + values +
		   "\tesac\n"
		   "\tcase $sub in\n" +
		   lists +
		   "\tesac\n"
		   "\tif [[ -z $sub || $word == -* ]]; then\n"
		   "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n" +
		   (files.empty() ? ""
						  : "\telif [[ $sub == @(" + files +
								") ]]; then\n"
								"\t\tcompopt -o filenames\n"
								"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n") +
		   "\tfi\n"
		   "}\n"
		   "complete -F _doorbell doorbell\n";
}

std::string zsh_completion(const Words &words)
{
	std::string subcommands;
	std::string cases;
	for (const Words &sub : words.subcommands) {
		subcommands += "\t\t" + in_quotes(sub.name + ':' + guarded(sub.description, ":\\")) + '\n';
		cases += '\t' + sub.name + ")\n\t\t_arguments \\\n" + zsh_options(options_of(words, sub), "\t\t\t");
		for (const Argument &positional : sub.positionals)
			cases += "\t\t\t" +
					 in_quotes((positional.repeats ? "*:" : ":") + guarded(positional.value, ":\\") + ':' +
							   zsh_action(positional)) +
					 " \\\n";
		cases += "\t\t\t&& return\n\t\t;;\n";
	}
	return "#compdef doorbell\n"
		   "# zsh completion of doorbell; made from the command itself\n"
		   "_doorbell()\n"
		   "{\n"
		   "\tlocal curcontext=$curcontext state line\n"
		   "\tlocal -a subcommands\n"
		   "\tsubcommands=(\n" +
		   subcommands +
		   "\t)\n"
		   "\t_arguments -C \\\n" +
		   zsh_options(words.options, "\t\t") +
		   "\t\t'1:subcommand:->subcommand' '*::argument:->argument' && return\n"
		   "\tcase $state in\n"
		   "\tsubcommand) _describe subcommand subcommands && return ;;\n"
		   "\tesac\n"
		   "\tcase $line[1] in\n" +
		   cases +
		   "\tesac\n"
		   "\treturn 1\n"
		   "}\n"
		   "_doorbell \"$@\"\n";
}

std::string fish_completion(const Words &words)
{
	std::string out = "# fish completion of doorbell; made from the command itself\n"
					  "complete -c doorbell -f\n" +
					  fish_options("__fish_use_subcommand", words.options);
	for (const Words &sub : words.subcommands) {
		const std::string condition = fish_quotes("__fish_seen_subcommand_from " + sub.name);
		out += "complete -c doorbell -n __fish_use_subcommand -a " + sub.name + " -d " + fish_quotes(sub.description) +
			   '\n' + fish_options(condition, options_of(words, sub));
		if (takes_file(sub))
			out += "complete -c doorbell -n " + condition + " -F\n";
	}
	return out;
}

} // namespace command::describe
