// What docs/recipes.md has for browsers and for Node, as it is printed there.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Database, faults, launch, Serve, until } from './backend.js';

const database = new Database();
const serve = new Serve(database, '--cors', '*');
let browser;

// A block of a recipe: the first one of that kind, or the one that is to be saved under that name.
function block(title, kind) {
	const document = readFileSync(new URL('../../docs/recipes.md', import.meta.url), 'utf8');
	const recipe = document.split(/^## /m).find(part => part.startsWith(title));
	const begin = recipe.indexOf('\n', recipe.indexOf('```' + kind)) + 1;
	return recipe.slice(begin, recipe.indexOf('```', begin));
}

before(async () => {
	await database.create();
	await serve.start();
	browser = await launch();
});

after(async () => {
	await browser?.close();
	await serve.stop('SIGTERM');
	await database.stop('SIGINT');
});

test('the live order page shows each change, through a kill of serve', async () => {
	await database.sql(block('A live order page', 'sql'));
	const file = join(database.folder, 'orders.html');
	writeFileSync(file, block('A live order page', 'html file=orders.html').replaceAll('8080', serve.port));
	const page = await browser.newPage();
	await page.goto(`file://${file}`);
	const shown = async () => (await page.locator('#orders li').allTextContents()).join(', ');
	await until('the order', async () => await shown() === 'order 42: paid');
	await faults['a kill of serve'](database, serve, () => database.sql("UPDATE orders SET state = 'sent'"));
	await database.sql("INSERT INTO orders VALUES (43, 7, 'new'), (44, 8, 'of somebody else')");
	await until('both orders', async () => await shown() === 'order 42: sent, order 43: new');
	await database.sql('DELETE FROM orders WHERE id = 42');
	await until('the other order', async () => await shown() === 'order 43: new');
});

test('the Node program gets each event once, in order', async () => {
	const program = new URL('follow.mjs', import.meta.url); // where it finds its package
	writeFileSync(program, block('Plain SQL', 'js file=follow.mjs'));
	await database.append('orders:7', { n: 0 }); // with what the recipe above has appended
	const follow = spawn('node', [program.pathname],
		{ env: { ...process.env, PGHOST: database.folder, PGUSER: 'postgres', PGDATABASE: 'postgres' }, stdio: ['ignore', 'pipe', 'inherit'] });
	let out = '';
	follow.stdout.on('data', text => out += text);
	const lines = () => out.split('\n').filter(line => /^\d+ /.test(line)).map(line => Number(line.split(' ')[0]));
	const count = Number(await database.sql("SELECT doorbell.high_water('orders:7')"));
	await until('the past', () => lines().length >= count);
	await database.append('orders:7', ...Array.from({ length: 20 }, (_, n) => ({ n })));
	await until('what comes', () => lines().length >= count + 20);
	follow.kill('SIGKILL');
	assert.deepEqual(lines(), Array.from({ length: count + 20 }, (_, i) => i + 1));
});
