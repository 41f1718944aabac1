// The manual page. Of Markdown it knows what docs/command.md uses: paragraphs, bullets, indented blocks, tables of two
// columns, headings, bold, code and links.
#include "formats.hpp"

#include <algorithm>
#include <cctype>
#include <istream>
#include <map>
#include <string_view>

namespace command::describe {
namespace {

// Text for troff: nothing in it is a request or an escape.
std::string escape(std::string_view text)
{
	std::string out;
	for (const char c : text) {
		if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
			out += "\\&";
		if (c == '\\')
			out += "\\e";
		else if (c == '-')
			out += "\\-";
		else
			out += c;
	}
	return out;
}

std::string bold(std::string_view text)
{
	return "\\fB" + escape(text) + "\\fR";
}

std::string italic(std::string_view text)
{
	return "\\fI" + escape(text) + "\\fR";
}

std::string upper(std::string text)
{
	std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
	return text;
}

std::string trim(std::string_view text)
{
	const std::size_t begin = text.find_first_not_of(" \t");
	return begin == std::string_view::npos ? std::string()
										   : std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

// `code` and **bold** become bold, [text](file.md) the file's name below docs, which is where these texts are.
std::string inlines(std::string_view text)
{
	std::string out;
	std::string plain;
	const auto styled = [&](std::string_view mark, std::size_t &i) {
		const std::size_t end = text.find(mark, i + mark.size());
		out += escape(plain) + bold(text.substr(i + mark.size(), end - i - mark.size()));
		plain.clear();
		i = end + mark.size();
	};
	for (std::size_t i = 0; i < text.size();) {
		if (text.substr(i, 2) == "**") {
			styled("**", i);
		} else if (text[i] == '`') {
			styled("`", i);
		} else if (text[i] == '[' && text.find("](", i) < text.find(']', i) + 1) {
			const std::size_t middle = text.find("](", i);
			const std::size_t end = text.find(')', middle);
			const std::string_view target = text.substr(middle + 2, end - middle - 2);
			out += escape(plain) + italic("docs/" + std::string(target.substr(0, target.find('#'))));
			plain.clear();
			i = end + 1;
		} else {
			plain += text[i++];
		}
	}
	return out + escape(plain);
}

using Block = std::vector<std::string>; // lines without an empty one between them

std::vector<Block> blocks_of(std::istream &text)
{
	std::vector<Block> blocks(1);
	for (std::string line; std::getline(text, line);) {
		if (!line.empty())
			blocks.back().push_back(line);
		else if (!blocks.back().empty())
			blocks.emplace_back();
	}
	return blocks;
}

std::string joined(const Block &block)
{
	std::string out;
	for (const std::string &line : block)
		out += (out.empty() ? "" : " ") + trim(line);
	return out;
}

// The cells of "| a | b |".
std::pair<std::string, std::string> cells(std::string_view row)
{
	const std::size_t middle = row.find('|', 1);
	const std::size_t end = row.rfind('|');
	return {trim(row.substr(1, middle - 1)), middle == end ? "" : trim(row.substr(middle + 1, end - middle - 1))};
}

std::string table(const Block &block)
{
	std::string out;
	for (std::size_t i = 2; i < block.size(); i++) { // behind the heading and the line below it
		const auto [name, meaning] = cells(block[i]);
		out += ".TP\n" + bold(name) + '\n' + inlines(meaning) + '\n';
	}
	return out;
}

std::string bullets(const Block &block)
{
	std::string out;
	Block item;
	for (std::size_t i = 0; i <= block.size(); i++) {
		if (i == block.size() || block[i].substr(0, 2) == "- ") {
			if (!item.empty())
				out += ".IP \\(bu 2\n" + inlines(joined(item)) + '\n';
			item.clear();
		}
		if (i < block.size())
			item.push_back(item.empty() ? block[i].substr(2) : block[i]);
	}
	return out;
}

std::string literal(const Block &block)
{
	std::string out = ".PP\n.nf\n.RS 4\n";
	for (const std::string &line : block)
		out += escape(line.substr(4)) + '\n';
	return out + ".RE\n.fi\n";
}

// docs/command.md, taken apart.
struct Text {
	std::string introduction;
	std::map<std::string, std::string> subcommands; // from paragraphs that begin with the name in bold
	std::string sections;							// tables and what is below headings
};

Text text_of(std::istream &in)
{
	Text text;
	std::string *place = &text.introduction;
	bool synopsis = true;
	for (const Block &block : blocks_of(in)) {
		if (block.empty())
			continue;
		const std::string &first = block.front();
		if (first.substr(0, 2) == "# ")
			continue;
		if (first.substr(0, 3) == "## ") {
			place = &text.sections;
			*place += ".SH " + upper(first.substr(3)) + '\n';
		} else if (first.front() == '|') {
			place = &text.sections;
			*place += ".SH " + upper(cells(first).first) + '\n' + table(block);
		} else if (first.substr(0, 2) == "- ") {
			*place += bullets(block);
		} else if (first.substr(0, 4) == "    ") {
			if (!synopsis) // the first one shows the subcommands
				*place += literal(block);
			synopsis = false;
		} else {
			if (first.substr(0, 2) == "**")
				place = &text.subcommands[first.substr(2, first.find("**", 2) - 2)];
			*place += ".PP\n" + inlines(joined(block)) + '\n';
		}
	}
	return text;
}

std::string names(const Argument &argument)
{
	std::string out;
	for (const std::string &name : argument.names)
		out += (out.empty() ? "" : ", ") + bold(name);
	return out;
}

// As it stands in a synopsis; `name` is empty for a positional argument.
std::string use(const Argument &argument, const std::string &name)
{
	std::string out = name.empty() ? "" : bold(name);
	if (!argument.value.empty())
		out += (name.empty() ? "" : "\\~") + italic(argument.value);
	if (argument.repeats)
		out += "\\~.\\|.\\|.";
	return (argument.required ? out : '[' + out + ']') + "\\&\n"; // not the end of a sentence
}

std::string synopsis(const Words &app, const Words &sub)
{
	std::string out = ".SY " + app.name + "\n[" + bold("--dsn") + "\\~" + italic("DSN") + "]\n" + bold(sub.name) + '\n';
	for (const Argument &argument : sub.positionals)
		out += use(argument, {});
	for (const bool required : {true, false})
		for (const Argument &argument : sub.options)
			if (argument.required == required)
				out += use(argument, argument.names.back());
	return out + ".YS\n";
}

std::string arguments(const std::vector<Argument> &arguments, bool positional)
{
	std::string out;
	for (const Argument &argument : arguments) {
		out += ".TP\n" + (positional ? italic(argument.value) : names(argument));
		if (!positional && !argument.value.empty())
			out += ' ' + italic(argument.value);
		out += '\n' + escape(argument.description) + '\n';
	}
	return out;
}

} // namespace

std::string manual(const Words &words, const std::string &version, std::istream &in)
{
	const Text text = text_of(in);
	std::string out = ".\\\" Made from the command itself; see cmd/describe.cpp.\n.TH " + upper(words.name) +
					  " 1 \"\" \"pg_doorbell " + version + "\" \"User Commands\"\n.SH NAME\n" + words.name + " \\- " +
					  escape(words.description.substr(0, words.description.find_last_not_of('.') + 1)) +
					  "\n.SH SYNOPSIS\n";
	for (const Words &sub : words.subcommands)
		out += synopsis(words, sub);
	out += ".SH DESCRIPTION\n" + text.introduction + ".SH OPTIONS\n" + arguments(words.options, false) +
		   ".SH SUBCOMMANDS\n";
	for (const Words &sub : words.subcommands) {
		const auto found = text.subcommands.find(sub.name);
		out += ".SS " + escape(sub.name) + '\n' + escape(sub.description) + ".\n";
		if (found != text.subcommands.end())
			out += found->second;
		out += arguments(sub.positionals, true) + arguments(sub.options, false);
	}
	return out + text.sections + ".SH SEE ALSO\n\\fBpsql\\fR(1)\n";
}

} // namespace command::describe
