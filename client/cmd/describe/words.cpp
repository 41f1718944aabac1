#include "words.hpp"

namespace command::describe {
namespace {

// From what CLI11 says of a validator: "{text,json}", or "value in {text->0,json->1} OR {0,1}".
std::vector<std::string> choices_of(const CLI::Option &option)
{
	std::vector<std::string> choices;
	const std::string type = option.get_type_name();
	const std::size_t begin = type.find('{');
	if (begin == std::string::npos)
		return choices;
	for (const std::string &choice : CLI::detail::split(type.substr(begin + 1, type.find('}') - begin - 1), ','))
		choices.push_back(choice.substr(0, choice.find("->")));
	return choices;
}

Argument argument_of(const CLI::Option &option)
{
	Argument argument;
	for (const std::string &name : option.get_snames())
		argument.names.push_back('-' + name);
	for (const std::string &name : option.get_lnames())
		argument.names.push_back("--" + name);
	if (argument.names.empty()) {
		argument.names.push_back(option.get_name(true));
		argument.value = argument.names.front();
	} else if (option.get_items_expected_max() > 0) {
		argument.value = option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
	}
	argument.description = option.get_description();
	argument.choices = choices_of(option);
	argument.required = option.get_required();
	argument.repeats = option.get_expected_max() > 1;
	return argument;
}

} // namespace

Words words_of(const CLI::App &app)
{
	Words words;
	words.name = app.get_name();
	words.description = app.get_description();
	const CLI::Option *known =
		app.get_parent() == nullptr ? nullptr : app.get_help_ptr(); // said of the command already
	for (const CLI::Option *option : app.get_options([](const CLI::Option *o) { return !o->get_group().empty(); }))
		if (option != known)
			(option->get_positional() ? words.positionals : words.options).push_back(argument_of(*option));
	for (const CLI::App *sub : app.get_subcommands([](const CLI::App *s) { return !s->get_group().empty(); }))
		words.subcommands.push_back(words_of(*sub));
	return words;
}

} // namespace command::describe
