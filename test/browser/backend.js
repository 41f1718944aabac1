// What the tests follow: a private PostgreSQL with the extension, and a running `doorbell serve`.
//
// 1. The programs are those in PATH, and DOORBELL names the command. Both run as this user, below TMPDIR.
// 2. A server that is killed is killed for real, by a signal, and started again in the same place: the same data
//    directory, the same port.
// 3. Nothing here sleeps to wait: `until` looks for a state again and again, with a deadline that only a failure
//    reaches.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const patience = 60_000;
const execute = promisify(execFile);

// Looks until `reached` gives something true, and returns that; errors count as "not yet".
export async function until(what, reached) {
	const deadline = Date.now() + patience;
	let error;
	do {
		try {
			const value = await reached();
			if (value)
				return value;
		} catch (caught) {
			error = caught;
		}
		await pause(10); // between two looks
	} while (Date.now() < deadline);
	throw new Error(`waited in vain for ${what}`, { cause: error });
}

// A headless Chromium.
export function launch() {
	return chromium.launch({
		executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
		args: ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
			'--disable-sync', '--disable-dev-shm-usage', '--no-sandbox'], // root, and containers, have no sandbox
	});
}

async function end(child, signal) {
	if (child.exitCode !== null || child.signalCode !== null)
		return;
	const gone = once(child, 'exit');
	child.kill(signal);
	await gone;
}

export class Database {
	folder = mkdtempSync(join(tmpdir(), 'pg-'));

	async create() {
		const data = join(this.folder, 'data');
		await execute('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-locale', '--encoding=UTF8', '-N']);
		appendFileSync(join(data, 'postgresql.conf'),
			`listen_addresses = ''\nunix_socket_directories = '${this.folder}'\nfsync = off\n`);
		await this.start();
		await this.sql('CREATE EXTENSION pg_doorbell');
	}

	async start() {
		const log = openSync(join(this.folder, 'log'), 'a');
		this.child = spawn('postgres', ['-D', join(this.folder, 'data')], { stdio: ['ignore', log, log] });
		await until('PostgreSQL', () => this.sql('SELECT 1'));
	}

	stop(signal) {
		return end(this.child, signal);
	}

	dsn(application) {
		return `host=${this.folder} dbname=postgres user=postgres application_name=${application}`;
	}

	// The result as text, one row in a line.
	async sql(text) {
		const { stdout } = await execute('psql', ['-XAtqd', this.dsn('test'), '-v', 'ON_ERROR_STOP=1', '-c', text]);
		return stdout.trimEnd();
	}

	// Payloads as JavaScript values; returns the last seq.
	async append(stream, ...payloads) {
		const rows = payloads.map(payload => `'${JSON.stringify(payload).replaceAll("'", "''")}'`).join(',');
		return Number((await this.sql(`SELECT doorbell.append('${stream}', 'made', p::jsonb) FROM unnest(ARRAY[${rows}]) p`))
			.split('\n').at(-1));
	}

	// What a complete reader has: [seq, payload] of each event.
	async events(stream) {
		return JSON.parse(await this.sql(
			`SELECT coalesce(jsonb_agg(jsonb_build_array(seq, payload) ORDER BY seq), '[]') FROM doorbell.replay('${stream}', 0, 1000000)`));
	}

	backend(application) {
		return this.sql(`SELECT pid FROM pg_stat_activity WHERE application_name = '${application}'`);
	}
}

export class Serve {
	port = 0; // of its own choice, and from then on the same

	constructor(database, ...options) {
		this.database = database;
		this.options = options;
	}

	async start() {
		this.child = spawn(process.env.DOORBELL, ['--dsn', this.database.dsn('reader'), 'serve', '--listen', `127.0.0.1:${this.port}`,
			'--listener-dsn', this.database.dsn('listener'), '--retry', '0.2', '--heartbeat', '0.2', ...this.options],
			{ stdio: ['ignore', 'ignore', 'pipe'] });
		let said = '';
		this.child.stderr.on('data', text => said += text);
		this.port = await until('serve to listen', () => {
			if (this.child.exitCode !== null)
				throw new Error(`serve has ended: ${said}`);
			return Number(/listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1]);
		});
	}

	stop(signal) {
		return end(this.child, signal);
	}

	url(path) {
		return `http://127.0.0.1:${this.port}${path}`;
	}

	async isLive() {
		return (await fetch(this.url('/healthz'))).status === 200;
	}
}

// The faults that a client must not notice but by reconnecting. Each returns when everything runs again.
export const faults = {
	async 'a kill of serve'(database, serve, meanwhile) {
		await serve.stop('SIGKILL');
		await meanwhile();
		await serve.start();
	},
	async "a kill of the listener's backend"(database, serve, meanwhile) {
		const victim = await until('the listener', () => database.backend('listener'));
		await database.sql(`SELECT pg_terminate_backend(${victim})`);
		await meanwhile();
		await until('another listener', async () => {
			const backend = await database.backend('listener');
			return backend && backend !== victim;
		});
	},
	async 'a crash of PostgreSQL'(database, serve, meanwhile) {
		await database.stop('SIGQUIT');
		await database.start();
		await meanwhile();
		await until('serve to be live', () => serve.isLive());
	},
};
