import { setTimeout as delay } from 'node:timers/promises';
import type { Identity } from '../../models/identity/index.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';
import { findActiveUser } from './installation.ts';

/** What may happen to a computer. After each of these, its files must be as they were. */
const events = {
  stop: (computer) => computer.post('/stop'),
  pause: async (computer) => {
    await computer.post('/pause');
    await computer.post('/wake');
  },
  recover: (computer) => computer.post('/recover', {}),
  // Ends everything on the computer, also the program through which Atrium reaches it.
  crash: async (computer) => {
    await computer.exec('kill -9 -1').catch(() => undefined);
    await computer.post('/recover', {});
  },
} as const satisfies Record<string, (computer: TriedComputer) => Promise<unknown>>;
type EventName = keyof typeof events;
const eventNames = Object.keys(events) as EventName[];
const leastBytes = 1_000;
const mostBytes = 1_000_000;
/** Longer than the server lets a request wait. */
const patienceMs = 120_000;
const pollMs = 1_000;

/** The Atrium to check, and how often. */
export interface DeepCheck {
  apiUrl: string;
  identity: Identity;
  cycles: number;
}

/**
 * Writes a file on a computer, lets something happen to the computer, and compares all files with what was written: one
 * cycle after the other. Uses a space of its own through the API, as the first user, and deletes it afterwards.
 */
export async function checkHomes({ apiUrl, identity, cycles }: DeepCheck): Promise<CheckResult> {
  const { id: userId } = await findActiveUser(identity, undefined);
  const token = await identity.sessions.createByOperator(userId, 'atrium doctor --deep');
  const api = new Api(apiUrl, token);
  try {
    const { id: spaceId } = await api.ask<{ id: string }>('POST', '/api/spaces', { name: 'atrium doctor --deep' });
    try {
      return await runCycles(await TriedComputer.in(api, spaceId), cycles);
    } finally {
      await api.ask('DELETE', `/api/spaces/${spaceId}`);
    }
  } catch (error) {
    if (error instanceof Refusal && error.status === 402) return off('no computer can run without credits');
    throw error;
  } finally {
    const { sessionId } = await identity.sessions.authenticate(token);
    await identity.sessions.revoke(userId, sessionId);
  }
}

async function runCycles(computer: TriedComputer, cycles: number): Promise<CheckResult> {
  const written: string[] = [];
  for (let cycle = 0; cycle < cycles; cycle++) {
    const event = eventNames[cycle % eventNames.length] as EventName;
    written.push(await writeFile(computer, `file-${cycle}`));
    await events[event](computer);
    const found = await sumsOf(computer);
    const lost = written.filter((line) => !found.has(line));
    if (lost.length > 0) {
      return wrong(`cycle ${cycle + 1} (${event}) changed or lost ${lost.length} of ${written.length} files`);
    }
  }
  return ok(`${cycles} cycles of ${eventNames.join(', ')}: each of ${written.length} files was there each time`);
}

/** Writes a file without asking for it to be on the disk. Returns its line in the output of `sha256sum`. */
async function writeFile(computer: TriedComputer, name: string): Promise<string> {
  const bytes = leastBytes + Math.floor(Math.random() * (mostBytes - leastBytes));
  return (await computer.exec(`head -c ${bytes} /dev/urandom > ${name} && sha256sum ${name}`)).trim();
}

async function sumsOf(computer: TriedComputer): Promise<Set<string>> {
  return new Set((await computer.exec('sha256sum file-*')).split('\n'));
}

/** The computer on which this is tried. */
class TriedComputer {
  readonly #api: Api;
  readonly #path: string;

  private constructor(api: Api, path: string) {
    this.#api = api;
    this.#path = path;
  }

  static async in(api: Api, spaceId: string): Promise<TriedComputer> {
    const { computerId } = await api.ask<{ computerId: string }>('GET', `/api/spaces/${spaceId}/computers/status`);
    return new TriedComputer(api, `/api/spaces/${spaceId}/computers/${computerId}`);
  }

  /** Asks for something, and waits until it is done. */
  async post(what: string, body?: object): Promise<void> {
    await this.#api.ask('POST', this.#path + what, body);
  }

  /** Runs a command, and returns what it prints. Wakes the computer. */
  async exec(command: string): Promise<string> {
    const { stdout } = await this.#api.ask<{ stdout: string }>('POST', `${this.#path}/exec`, { command });
    return stdout;
  }
}

class Refusal extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(`${status}: ${text.slice(0, 300)}`);
    this.status = status;
  }
}

class Api {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** The answer to a request. An operation that takes longer than a request is waited for. */
  async ask<T = unknown>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(this.#url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(patienceMs),
    });
    const text = await response.text();
    if (!response.ok) throw new Refusal(response.status, text);
    if (response.status === 202) await this.#ended(response.headers.get('location') ?? '');
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  async #ended(path: string): Promise<void> {
    for (;;) {
      const { status, error } = await this.ask<{ status: string; error?: unknown }>('GET', path);
      if (status === 'succeeded') return;
      if (status !== 'running') throw new Error(`${path} ${status}: ${JSON.stringify(error)}`);
      await delay(pollMs);
    }
  }
}
