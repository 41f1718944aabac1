// doorbell describe FORM: prints the manual page or a completion script. The build runs it, people need not see it.
#include "command.hpp"
#include "describe/formats.hpp"
#include "output.hpp"

#include <doorbell/doorbell.hpp>

#include <fstream>
#include <memory>
#include <stdexcept>

namespace command {
namespace {

struct Describe {
	std::string form;
	std::string text_file;

	int run(const CLI::App &app) const
	{
		Output output;
		output.text() = text(describe::words_of(app));
		output.flush();
		return succeeded;
	}

	std::string text(const describe::Words &words) const
	{
		if (form == "bash")
			return describe::bash_completion(words);
		if (form == "zsh")
			return describe::zsh_completion(words);
		if (form == "fish")
			return describe::fish_completion(words);
		std::ifstream text(text_file);
		if (!text)
			throw std::runtime_error("could not read \"" + text_file + "\"");
		return describe::manual(words, doorbell::version, text);
	}
};

} // namespace

void add_describe(CLI::App &app, Command &command)
{
	const auto describe = std::make_shared<Describe>();
	CLI::App *sub = app.add_subcommand("describe", "Print the manual page or a completion script")->group("");
	sub->add_option("FORM", describe->form, "man, bash, zsh or fish")
		->required()
		->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
	sub->add_option("FILE", describe->text_file, "docs/command.md, for man");
	sub->callback([describe, &app, &command] { command.run = [describe, &app] { return describe->run(app); }; });
}

} // namespace command
