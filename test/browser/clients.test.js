// The packages `eventsource` and `eventsource-parser` follow a real serve: what they take is compared with the table.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Database, faults, Serve, until } from './backend.js';
import { EventSourceClient, ParserClient } from './clients.js';

const database = new Database();
const serve = new Serve(database);
const kinds = { eventsource: EventSourceClient, 'eventsource-parser': ParserClient };

before(async () => {
	await database.create();
	await serve.start();
});

after(async () => {
	await serve.stop('SIGTERM');
	await database.stop('SIGINT');
});

// Appends to the stream without a pause, through whatever happens, until it is told to stop.
function writer(stream) {
	let stopping = false;
	let written = 0;
	const done = (async () => {
		while (!stopping) {
			try {
				await database.append(stream, { n: written }, 'ü\r\n🔔', null);
				written++;
			} catch {
				// PostgreSQL is down; whether this one was committed, the table knows
			}
		}
	})();
	return {
		written: () => written,
		async stop() {
			stopping = true;
			await done;
		},
	};
}

let streams = 0;

// Follows one stream by clients of that kind; they are closed at the end.
async function following(Kind, query, work) {
	const stream = `s${++streams}`;
	const client = new Kind(serve.url(`/v1/streams/${stream}?${query}`));
	try {
		await until('the stream to open', () => client.opened > 0);
		await work(client, stream);
	} finally {
		await client.close();
	}
}

for (const [kind, Kind] of Object.entries(kinds)) {
	for (const [what, fault] of Object.entries(faults)) {
		test(`${kind}: every event comes once, in order, through ${what}`, () => following(Kind, 'after=0', async (client, stream) => {
			const appending = writer(stream);
			await until('events', () => client.events.length > 10);
			const opened = client.opened;
			await fault(database, serve, async () => {
				const written = appending.written();
				if (what !== 'a crash of PostgreSQL')
					await until('more to be written', () => appending.written() > written + 2);
			});
			if (what === 'a kill of serve')
				await until('the client to come back', () => client.opened > opened);
			else
				assert.equal(client.opened, opened, 'the connection outlives it');
			const before = client.events.length;
			await until('more events', () => client.events.length > before + 10);
			await appending.stop();
			const last = await database.append(stream, 'last');
			await until('the last event', () => Number.parseInt(client.events.at(-1).id, 10) >= last);
			assert.deepEqual(client.taken(), await database.events(stream));
			assert.deepEqual(client.controls, []);
		}));
	}

	test(`${kind}: it comes back with the id of its last event`, () => following(Kind, 'after=0', async (client, stream) => {
		await database.append(stream, 1, 2, 3);
		await until('three events', () => client.events.length === 3);
		await faults['a kill of serve'](database, serve, () => database.append(stream, 4));
		await until('the fourth event', () => client.events.length === 4);
		assert.equal(client.asked[0], undefined);
		assert.match(client.events[2].id, /^3-[0-9a-f]{8}$/);
		assert.equal(client.asked.at(-1), client.events[2].id);
	}));

	test(`${kind}: SIGTERM is announced by a shutdown event, and the client comes back without a loss`, () =>
		following(Kind, 'after=0', async (client, stream) => {
			await database.append(stream, 1);
			await until('an event', () => client.events.length === 1);
			await serve.stop('SIGTERM');
			await until('the shutdown event', () => client.controls.length === 1);
			assert.equal(client.controls[0].type, 'doorbell:shutdown');
			await database.append(stream, 2);
			await serve.start();
			await until('the next event', () => client.events.length === 2);
			assert.deepEqual(client.taken(), [[1, 1], [2, 2]]);
			assert.equal(client.asked.at(-1), client.events[0].id);
		}));

	test(`${kind}: a gap and a reset are events of their own that move no cursor`, () => following(Kind, 'after=0', async (client, stream) => {
		await database.append(stream, 1, 2);
		await until('two events', () => client.events.length === 2);
		const last = client.events[1].id;
		await serve.stop('SIGKILL');
		await database.append(stream, 3, 4, 5);
		await database.sql(`SELECT doorbell.trim('${stream}', 4)`);
		await serve.start();
		await until('what is left', () => client.events.length === 3);
		assert.deepEqual(client.controls.map(({ type, data }) => [type, JSON.parse(data)]),
			[['doorbell:gap', { stream, asked: 2, low_water: 4 }]]);
		assert.ok([undefined, '', last].includes(client.controls[0].id)); // the packages differ; a cursor of its own it has not
		assert.equal(Number.parseInt(client.events[2].id, 10), 5);

		await serve.stop('SIGKILL');
		const { id } = client.events[2];
		const forget = `SET session_replication_role = replica; DELETE FROM doorbell.event WHERE stream = '${stream}'`;
		await database.sql(forget); // as a restore would leave it
		await database.append(stream, 'other');
		await serve.start();
		await until('the other history', () => client.events.at(-1).data === '"other"');
		assert.equal(client.controls.at(-1).type, 'doorbell:reset');
		assert.deepEqual(JSON.parse(client.controls.at(-1).data), { stream, asked: 5, low_water: 4 });
		assert.equal(client.asked.at(-1), id);
	}));

	test(`${kind}: raw=1 brings HTML as HTML, and other payloads as JSON`, () => following(Kind, 'after=0&raw=1&named=0', async (client, stream) => {
		const html = '<li id="a">“Tea” &amp; <b>cake</b></li>';
		await database.append(stream, html, { html }, 7);
		await until('three events', () => client.events.length === 3);
		assert.equal(client.events[0].type, 'message');
		assert.equal(client.events[0].data, html);
		assert.deepEqual(JSON.parse(client.events[1].data), { html });
		assert.equal(client.events[2].data, '7');
	}));

	test(`${kind}: raw strings keep their characters, spaces and lines`, () => following(Kind, 'after=0&raw=1', async (client, stream) => {
		const texts = ['Grüße, 世界 🔔 \u2028 \ufeff', '', ' begins with a space', ':colon', 'data: x', 'a\nb\n', '\n\n', 'id: 7\n\nevent: x', '\ttab '];
		await database.append(stream, ...texts);
		await until('all', () => client.events.length === texts.length);
		assert.deepEqual(client.events.map(event => event.data), texts);
	}));

	test(`${kind}: CR and CRLF in raw strings arrive as LF`, () => following(Kind, 'after=0&raw=1', async (client, stream) => {
		const texts = ['a\rb', 'a\r\nb', '\r', '\r\r\n\n', 'end\r'];
		await database.append(stream, ...texts);
		await until('all', () => client.events.length === texts.length);
		assert.deepEqual(client.events.map(event => event.data), texts.map(text => text.replace(/\r\n?/g, '\n')));
	}));
}

test('eventsource-parser: greeting, heartbeats and retry are no events', () => following(ParserClient, 'after=0', async client => {
	await until('heartbeats', () => client.comments.filter(comment => comment === '').length > 2);
	assert.notEqual(client.comments[0], '');
	assert.ok(client.retry >= 100 && client.retry <= 300);
	assert.deepEqual([...client.events, ...client.controls], []);
	assert.equal(client.error, undefined);
}));
