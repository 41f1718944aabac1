#include "metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace command::serve {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

namespace {

using Samples = std::vector<std::pair<std::string, std::uint64_t>>; // a label's values

class Families {
public:
	void counter(const char *name, const char *help, std::uint64_t value) { counters(name, help, "", {{"", value}}); }
	void gauge(const char *name, const char *help, std::uint64_t value) { gauges(name, help, "", {{"", value}}); }

	void counters(const char *name, const char *help, const char *label, const Samples &samples)
	{
		add(name, help, MetricType::Counter, metrics(label, samples, &ClientMetric::counter));
	}

	void gauges(const char *name, const char *help, const char *label, const Samples &samples)
	{
		add(name, help, MetricType::Gauge, metrics(label, samples, &ClientMetric::gauge));
	}

	void add(const char *name, const char *help, MetricType type, std::vector<ClientMetric> metrics)
	{
		MetricFamily family;
		family.name = name;
		family.help = help;
		family.type = type;
		family.metric = std::move(metrics);
		all_.push_back(std::move(family));
	}

	std::string text() const { return prometheus::TextSerializer().Serialize(all_); }

private:
	template <typename Value>
	static std::vector<ClientMetric> metrics(const char *label, const Samples &samples, Value ClientMetric::*member)
	{
		std::vector<ClientMetric> made;
		for (const auto &[name, value] : samples) {
			ClientMetric metric;
			if (label[0] != '\0')
				metric.label = {{label, name}};
			(metric.*member).value = static_cast<double>(value);
			made.push_back(std::move(metric));
		}
		return made;
	}

	std::vector<MetricFamily> all_;
};

} // namespace

Metrics::Metrics() : age_({.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}) {}

void Metrics::arrived(const doorbell::Event &event)
{
	const auto now =
		std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
	// Clocks of two machines may disagree.
	age_.Observe(static_cast<double>(std::max<std::int64_t>(now.count() - event.appended_at, 0)) / 1e6);
}

std::string Metrics::text(const doorbell::Streamer &streamer) const
{
	const doorbell::StreamerStats &stats = streamer.stats();
	const doorbell::SubscriberStats &subscriber = streamer.subscriber_stats();
	Families families;
	families.gauge("doorbell_connections", "Connections that follow streams.", stats.connections);
	families.counter("doorbell_connections_opened_total", "Connections that have begun to follow streams.",
					 stats.added);
	families.counter("doorbell_turned_away_total", "Connections turned away because the house was full.", turned_away_);
	families.counter("doorbell_events_sent_total", "Events given to connections.", stats.frames);
	families.counter("doorbell_bytes_sent_total", "Bytes written to connections that follow streams.", stats.bytes);
	families.counter("doorbell_fell_behind_total", "Times that a connection's buffer was full.", stats.fell_behind);
	families.counter("doorbell_catch_ups_total", "Reads for connections that were behind.", stats.catch_ups);
	families.counter("doorbell_cuts_total", "Connections cut at their write deadline.", stats.cut);
	families.counter("doorbell_expired_total", "Connections closed because their token expired.", stats.expired);
	families.counter("doorbell_idle_total", "Connections closed because no event came for so long.", stats.idle);
	families.counter("doorbell_gaps_total", "Gaps told: cursors older than low water.", stats.gaps);
	families.counter("doorbell_resets_total", "Resets told: cursors of another history.", stats.resets);

	families.counter("doorbell_events_total", "Events that arrived live.", stats.events);
	families.counter("doorbell_rings_total", "Rings heard.", subscriber.rings);
	families.counter("doorbell_reads_total", "Round trips that asked for events.", subscriber.reads + stats.reads);
	families.counter("doorbell_sweeps_total", "Sweeps.", subscriber.sweeps);
	families.counter("doorbell_listener_connects_total", "Times that the listener became live.",
					 subscriber.listener_connects);
	families.counter("doorbell_reader_connects_total", "Times that the reading connection was made.",
					 subscriber.reader_connects);

	using doorbell::State;
	const auto is = [&streamer](State state) -> std::uint64_t { return streamer.state() == state ? 1 : 0; };
	families.gauges("doorbell_state", "1 for the state that the listener is in.", "state",
					{{"live", is(State::live)}, {"sweeping", is(State::sweeping)}, {"down", is(State::down)}});
	families.add("doorbell_event_age_seconds", "From the append of an event to its arrival here.",
				 MetricType::Histogram, {age_.Collect()});

	Samples answers;
	for (const auto &[status, count] : answers_)
		answers.emplace_back(std::to_string(status), count);
	families.counters("doorbell_http_answers_total", "Requests answered, by status.", "code", answers);
	return families.text();
}

} // namespace command::serve
