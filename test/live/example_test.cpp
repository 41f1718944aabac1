// The example program, as somebody would run it.
#include "follower.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sys/wait.h>
#include <unistd.h>

namespace live {
namespace {

// A program that runs beside the test, its output in files.
class Program {
public:
	Program(const std::string &name, std::vector<std::string> arguments)
	{
		// It was built beside the test program.
		arguments.insert(arguments.begin(), std::filesystem::read_symlink("/proc/self/exe").parent_path() / name);
		std::vector<char *> argv;
		for (std::string &argument : arguments)
			argv.push_back(argument.data());
		argv.push_back(nullptr);
		pid_ = ::fork();
		if (pid_ != 0)
			return;
		if (std::freopen(out_.path().c_str(), "w", stdout) != nullptr &&
			std::freopen(err_.path().c_str(), "w", stderr) != nullptr)
			::execv(argv[0], argv.data());
		::_exit(127);
	}

	~Program()
	{
		if (pid_ > 0)
			end(SIGKILL);
	}

	int end(int signal) // the exit status, or -1
	{
		int status = 0;
		::kill(pid_, signal);
		::waitpid(pid_, &status, 0);
		pid_ = -1;
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}

	std::string out() const { return out_.text(); }
	std::string err() const { return err_.text(); }

private:
	class Output {
	public:
		Output()
		{
			std::string path = (std::filesystem::temp_directory_path() / "doorbell-output-XXXXXX").string();
			const int fd = ::mkstemp(path.data());
			if (fd < 0)
				throw std::runtime_error("could not make a temporary file");
			::close(fd);
			path_ = path;
		}
		~Output() { std::filesystem::remove(path_); }
		Output(const Output &) = delete;
		Output &operator=(const Output &) = delete;

		const std::string &path() const { return path_; }
		std::string text() const
		{
			std::ifstream file(path_);
			return std::string(std::istreambuf_iterator<char>(file), {});
		}

	private:
		std::string path_;
	};

	Output out_;
	Output err_;
	pid_t pid_;
};

struct ExampleTest : LiveTest {
	std::string lines_of(const std::string &stream, int first, int last)
	{
		return sql(
			"SELECT coalesce(string_agg(format('{\"stream\":%s,\"seq\":%s,\"type\":%s,\"appended_at\":\"%s\","
			"\"payload\":%s}' || chr(10), to_json(stream), seq, to_json(type), to_char(appended_at AT TIME ZONE 'UTC',"
			" 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), payload), '' ORDER BY seq), '') FROM doorbell.replay(" +
			literal(stream) + ", 0, 1000) WHERE seq BETWEEN " + std::to_string(first) + " AND " + std::to_string(last));
	}
};

TEST_F(ExampleTest, follow_prints_history_and_news_until_it_is_interrupted)
{
	append("it's: \"one\"", "{\"a\": 1}");
	append("gone");
	sql("SELECT doorbell.trim('gone', 1)");
	Program follow("follow", {database.dsn("follow"), "it's: \"one\"", "gone"});
	const std::string first = lines_of("it's: \"one\"", 1, 1);
	wait_for("history", [&] { return follow.out() == first; });
	append("it's: \"one\"", "\"Grüße 🔔\"");
	const std::string both = lines_of("it's: \"one\"", 1, 2);
	wait_for("news", [&] { return follow.out() == both; });
	EXPECT_EQ(follow.end(SIGINT), 0);
	EXPECT_EQ(follow.err(), "");
}

TEST_F(ExampleTest, follow_says_what_is_wrong_and_fails)
{
	sql("DROP EXTENSION pg_doorbell");
	Program follow("follow", {database.dsn("follow"), "s"});
	wait_for("its complaint", [&] { return !follow.err().empty() && follow.err().back() == '\n'; });
	EXPECT_NE(follow.err().find("follow: function doorbell."), std::string::npos) << follow.err();
	EXPECT_EQ(follow.end(0), 1) << "the exit status";
}

TEST_F(ExampleTest, the_C_program_goes_on_from_a_cursor)
{
	append("s", "{\"a\": 1}");
	append("s", "\"Grüße 🔔\"");
	const auto is_printed = [](const std::string &out, const char *lines) {
		return std::regex_match(out, std::regex(lines));
	};
	std::string cursor;
	{
		Program follow("follow_c", {database.dsn("follow"), "s"});
		wait_for("history", [&] {
			return is_printed(follow.out(), "1-[0-9a-f]{8} t \\{\"a\": 1\\}\n2-[0-9a-f]{8} t \"Grüße 🔔\"\n");
		});
		cursor = follow.out().substr(0, 10);
	}
	Program follow("follow_c", {database.dsn("follow"), "s", cursor});
	append("s", "3");
	wait_for("what follows",
			 [&] { return is_printed(follow.out(), "2-[0-9a-f]{8} t \"Grüße 🔔\"\n3-[0-9a-f]{8} t 3\n"); });
	sql("SELECT doorbell.trim('s', 3)");
	Program late("follow_c", {database.dsn("follow"), "s", cursor});
	wait_for("the gap", [&] { return late.out() == "s: events up to 3 were trimmed away\n"; });
	EXPECT_EQ(follow.err() + late.err(), "");
}

TEST_F(ExampleTest, the_C_program_says_what_is_wrong_and_fails)
{
	Program follow("follow_c", {database.dsn("follow"), "s", "1-0000"});
	wait_for("its complaint", [&] { return !follow.err().empty() && follow.err().back() == '\n'; });
	EXPECT_NE(follow.err().find("1-0000"), std::string::npos) << follow.err();
	EXPECT_EQ(follow.end(0), 1) << "the exit status";
}

} // namespace
} // namespace live
