// Two independent SSE clients from npm. Each writes down what it is given: `events`, `controls`, and the Last-Event-ID
// that each of its requests had.
import { EventSource } from 'eventsource';
import { createParser } from 'eventsource-parser';
import { setTimeout as pause } from 'node:timers/promises';

class Client {
	events = []; // { id, type, data }
	controls = [];
	asked = []; // one entry for each request
	opened = 0;

	take(id, type, data) {
		(type.startsWith('doorbell:') ? this.controls : this.events).push({ id, type, data });
	}

	// [seq, payload] of each event, as Database.events gives them.
	taken() {
		return this.events.map(({ id, data }) => [Number.parseInt(id, 10), JSON.parse(data)]);
	}
}

// The package `eventsource`: what a browser has, for Node.
export class EventSourceClient extends Client {
	constructor(url) {
		super();
		this.source = new EventSource(url, {
			fetch: (input, init) => {
				this.asked.push(init.headers['Last-Event-ID']);
				return fetch(input, init);
			},
		});
		this.source.onopen = () => this.opened++;
		for (const type of ['message', 'made', 'doorbell:gap', 'doorbell:reset', 'doorbell:shutdown'])
			this.source.addEventListener(type, event => this.take(event.lastEventId, type, event.data));
	}

	close() {
		this.source.close();
	}
}

// The package `eventsource-parser` behind fetch, with the reconnecting that a program writes for itself.
export class ParserClient extends Client {
	last = undefined; // Last-Event-ID
	retry = 100;
	comments = [];
	#abort = new AbortController();

	constructor(url) {
		super();
		this.done = this.#follow(url);
	}

	async #follow(url) {
		while (!this.#abort.signal.aborted) {
			try {
				await this.#connection(url);
			} catch {
				// cut off, or nobody there: again
			}
			await pause(this.retry); // as the server asked
		}
	}

	async #connection(url) {
		const parser = createParser({
			onEvent: event => {
				this.last = event.id ?? this.last;
				this.take(event.id, event.event ?? 'message', event.data);
			},
			onRetry: retry => this.retry = retry,
			onComment: comment => this.comments.push(comment),
			onError: error => this.error = error,
		});
		this.asked.push(this.last);
		const answer = await fetch(url, { headers: this.last ? { 'Last-Event-ID': this.last } : {}, signal: this.#abort.signal });
		this.opened++;
		for await (const text of answer.body.pipeThrough(new TextDecoderStream()))
			parser.feed(text);
	}

	close() {
		this.#abort.abort();
		return this.done;
	}
}
