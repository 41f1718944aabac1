// The page at `/` in a headless Chromium, through everything that cuts it off.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Database, faults, launch, Serve, until } from './backend.js';

const database = new Database();
const serve = new Serve(database);
let browser, page;
const asked = []; // the Last-Event-ID of each request for events
const complaints = []; // what the page itself did wrong

before(async () => {
	await database.create();
	await serve.start();
	browser = await launch();
	page = await browser.newPage();
	page.on('pageerror', error => complaints.push(String(error)));
	page.on('console', message => {
		if (/Content Security Policy|Uncaught/.test(message.text()))
			complaints.push(message.text());
	});
	const network = await page.context().newCDPSession(page); // the page's own view of a request has no Last-Event-ID
	const urls = new Map();
	network.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url));
	network.on('Network.requestWillBeSentExtraInfo', ({ requestId, headers }) => {
		if (urls.get(requestId)?.includes('/v1/events') ?? 'Last-Event-ID' in headers)
			asked.push(headers['Last-Event-ID']);
	});
	await network.send('Network.enable');
});

after(async () => {
	await browser?.close();
	await serve.stop('SIGTERM');
	await database.stop('SIGINT');
});

const text = id => page.locator('#' + id).textContent();
// The seqs in the list, from the oldest to the newest, without control events.
const seqs = async () => (await page.locator('#list li:not(.control) .name small').allTextContents()).map(Number).reverse();
const oneTo = last => Array.from({ length: last }, (_, i) => i + 1);

async function untilShown(count) {
	await until(`${count} events on the page`, async () => (await seqs()).length >= count);
	assert.deepEqual(await seqs(), oneTo(count));
}

async function connect(after) {
	await page.goto('about:blank');
	await page.goto(serve.url('/'));
	await page.fill('#names', 'page');
	await page.fill('#after', after);
	await page.click('#go');
	await until('the page to connect', async () => await text('state') === 'connected');
}

test('the page follows the stream that was picked, from its beginning', async () => {
	await database.append('page', { n: 1 }, { n: 2 }, { n: 3 });
	await connect('0');
	await untilShown(3);
	assert.equal(await text('reconnects'), '0');
});

test('what is appended now comes live, and the cursor is that of the last event', async () => {
	await database.append('page', { n: 4 }, 'fünf 🔔');
	await untilShown(5);
	assert.match(await text('cursor'), /^5-[0-9a-f]{8}$/);
	assert.equal(await page.locator('#list li').first().locator('code').textContent(), '"fünf 🔔"');
});

test('a payload is text on the page and never markup', async () => {
	await database.append('page', '<img src=x onerror=alert(1)>');
	await untilShown(6);
	assert.equal(await page.locator('#list img').count(), 0);
});

let shown = 6;
for (const [what, fault] of Object.entries(faults))
	test(`nothing is missing and nothing comes twice through ${what}`, async () => {
		const reconnects = Number(await text('reconnects'));
		const cursor = await text('cursor');
		await fault(database, serve, async () => {
			await database.append('page', ...oneTo(5));
		});
		if (what === 'a kill of serve') {
			await until('the page to reconnect', async () => Number(await text('reconnects')) > reconnects);
			await until('its request', () => asked.at(-1) !== undefined);
			assert.equal(asked.at(-1), cursor, 'it comes back by Last-Event-ID');
		}
		await untilShown(shown += 5);
		await database.append('page', 'after it');
		await untilShown(shown += 1);
		assert.equal(await text('state'), 'connected');
	});

test('SIGTERM is shown as an event of its own, and the page comes back', async () => {
	await serve.stop('SIGTERM');
	await until('the shutdown event', async () => await page.locator('#list li.control').count() === 1);
	await database.append('page', 'while it was away');
	await serve.start();
	await untilShown(shown += 1);
	assert.equal(await text('controls'), '0');
});

test('a gap is shown and counted', async () => {
	const last = await database.append('page', 'one more');
	await untilShown(shown += 1);
	await serve.stop('SIGKILL');
	await database.append('page', 'lost', 'left');
	await database.sql(`SELECT doorbell.trim('page', ${last + 1})`);
	await serve.start();
	await until('the gap', async () => await text('controls') === '1');
	await until('what is left', async () => (await seqs()).at(-1) === last + 2);
	assert.equal((await seqs()).length, shown + 1);
	assert.match(await page.locator('#list li.control .payload').first().textContent(), /^doorbell:gap/);
});

test("a browser's own EventSource takes raw=1 as HTML", async () => {
	await database.append('fragments', '<b>bold</b>\n<i>italic</i>');
	const parsed = await page.evaluate(() => new Promise((resolve, reject) => {
		const source = new EventSource('/v1/streams/fragments?after=0&raw=1');
		source.onerror = () => reject(new Error('refused'));
		source.addEventListener('made', event => {
			source.close();
			const { body } = new DOMParser().parseFromString(event.data, 'text/html');
			resolve({ markup: body.innerHTML, names: [...body.children].map(child => child.localName) });
		});
	}));
	assert.deepEqual(parsed, { markup: '<b>bold</b>\n<i>italic</i>', names: ['b', 'i'] });
});

test('the page broke no rule of its content security policy and had no error', () => {
	assert.deepEqual(complaints, []);
});
