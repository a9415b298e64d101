import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { nodeFlags } from '../../bin/nodeFlags.mjs';
import { findRunning } from '../../bin/support/running.ts';

const root = join(import.meta.dirname, '..', '..');

export interface BenchedAtrium {
  url: string;
  token: string;
  /** The process of `up`. Its descendants are the database, Temporal and the object store. */
  pid: number;
  /** Variables with which another process can join: the addresses of the parts. */
  environment: Record<string, string | undefined>;
  /** Sends a request as the first user, with a body in JSON or a form. Throws unless it succeeds. */
  send(method: string, path: string, body?: unknown, accept?: string): Promise<Response>;
  /** Sends a request, and returns the body of the answer. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  stop(): Promise<void>;
}

/** Starts all of Atrium as `npm start` does, with its own data and ports. */
export async function startAtrium(settings: Record<string, string>): Promise<BenchedAtrium> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atrium-bench-'));
  const environment = {
    ...process.env,
    ATRIUM_DATA_DIR: dataDir,
    ATRIUM_PORT: '0',
    ATRIUM_TITLE_MODEL: 'off',
    ...settings,
  };
  const program = spawn(process.execPath, [...nodeFlags, join(root, 'bin', 'atrium.ts'), 'up', '--json'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { apiUrl } = JSON.parse(await firstLine(program)) as { apiUrl: string };
  const token = await tokenFor(environment);
  const send: BenchedAtrium['send'] = async (method, path, body, accept = 'application/json') => {
    const isForm = body instanceof FormData;
    const response = await fetch(apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, accept, ...(!isForm && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  return {
    url: apiUrl,
    token,
    pid: program.pid ?? 0,
    environment: { ...environment, ...findRunning(dataDir)?.environment },
    send,
    call: async (method, path, body) => (await (await send(method, path, body)).json()) as never,
    async stop() {
      program.kill('SIGTERM');
      await once(program, 'exit');
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A session token of the first user, for the installation in the environment. */
export async function tokenFor(environment: NodeJS.ProcessEnv): Promise<string> {
  const program = join(root, 'bin', 'atrium.ts');
  return firstLine(
    spawn(process.execPath, [program, 'token'], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] }),
  );
}

/** Starts a Node program that prints one line when it is ready. */
export async function startProgram(path: string): Promise<{ line: string; process: ChildProcess }> {
  const child = spawn(process.execPath, [join(root, path)], { stdio: ['ignore', 'pipe', 'inherit'] });
  return { line: await firstLine(child), process: child };
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('The program has no output.');
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('The program ended before it was ready.');
}
