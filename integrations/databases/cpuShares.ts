import { existsSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { resolve } from 'node:path';
import type { TenantConnection } from './connection.ts';

/** Maps accounts, by their names on the server, to their spaces. */
export type TenantsOf = (users: readonly string[]) => Promise<ReadonlyMap<string, string>>;

/** Each step of niceness divides a thread's share of the CPU by this, see sched(7). */
const stepOfNiceness = 1.25;
const mostNiceness = 19;
/** The fraction of a tenant's earlier demand that counts at the next look, so that a short pause does not reset it. */
const remembered = 0.8;

interface Thread {
  tid: number;
  tenant: string;
  /** The server's niceness, with which the thread began. */
  own: number;
  /** How long it has run, or waited to run, since it began. */
  wantedMs: number;
}

interface Row {
  tid: number | string;
  user: string;
  pidFile: string;
  folder: string;
  handling: string;
  cached: number;
}

/**
 * Shares the CPU by tenant instead of by connection, on a MariaDB server on this machine. The more cores a tenant
 * wants, the less its threads weigh against those of others. Idle CPU stays available to it. The server must end each
 * thread with its connection, so that a slowed thread never serves another tenant. If this process may not raise a
 * priority again, a connection keeps its lower one.
 */
export class CpuShares {
  #lastLook: number | undefined;
  #wantedMs = new Map<number, number>();
  #niceness = new Map<number, number>();
  #cores = new Map<string, number>();
  #tenants = new Map<string, string>();
  readonly #prefixes: readonly string[];
  readonly #tenantsOf: TenantsOf;

  /** Covers the accounts whose names begin with these prefixes. */
  constructor(prefixes: readonly string[], tenantsOf: TenantsOf) {
    this.#prefixes = prefixes;
    this.#tenantsOf = tenantsOf;
  }

  async look(connection: TenantConnection): Promise<void> {
    if (!connection.isMariaDb) return;
    const threads = await this.#threadsOn(connection);
    const cores = this.#wantedCores(threads);
    const before = this.#niceness;
    this.#niceness = new Map();
    for (const { tid, tenant, own } of threads) {
      const had = before.get(tid) ?? own;
      const niceness = Math.min(mostNiceness, own + stepsBack(cores.get(tenant) ?? 0));
      this.#niceness.set(tid, niceness === had || setNiceness(tid, niceness) ? niceness : had);
    }
  }

  async #threadsOn(connection: TenantConnection): Promise<Thread[]> {
    const rows = await connection.rows<Row>(
      `SELECT TID AS tid, USER AS user, @@pid_file AS pidFile, @@datadir AS folder, @@thread_handling AS handling,
          @@thread_cache_size AS cached
         FROM information_schema.PROCESSLIST WHERE ${this.#prefixes.map(() => 'USER LIKE ?').join(' OR ')}`,
      this.#prefixes.map((prefix) => `${prefix}%`),
    );
    const [about] = rows;
    if (about?.handling !== 'one-thread-per-connection' || Number(about.cached) > 0) return [];
    const server = processIn(resolve(about.folder, about.pidFile));
    if (server === undefined) return [];
    await this.#learnTenants(rows.map(({ user }) => user));
    return rows.flatMap(({ tid, user }) => {
      const wantedMs = wantedMsOf(server.pid, Number(tid));
      const tenant = this.#tenants.get(user) ?? user;
      return wantedMs === undefined ? [] : [{ tid: Number(tid), tenant, wantedMs, own: server.niceness }];
    });
  }

  /** An account belongs to one tenant for its lifetime. */
  async #learnTenants(users: readonly string[]): Promise<void> {
    const present = new Set(users);
    const unknown = [...present].filter((user) => !this.#tenants.has(user));
    const learned = unknown.length === 0 ? [] : await this.#tenantsOf(unknown);
    this.#tenants = new Map([...this.#tenants, ...learned].filter(([user]) => present.has(user)));
  }

  /** The number of cores that each tenant would have used since the last look, if there were enough. */
  #wantedCores(threads: readonly Thread[]): ReadonlyMap<string, number> {
    const now = performance.now();
    const elapsedMs = now - (this.#lastLook ?? now);
    const cores = new Map<string, number>();
    // At the first look, the elapsed time is unknown.
    for (const { tid, tenant, wantedMs } of elapsedMs > 0 ? threads : []) {
      const since = wantedMs - (this.#wantedMs.get(tid) ?? 0);
      cores.set(tenant, (cores.get(tenant) ?? 0) + Math.min(1, since / elapsedMs));
    }
    for (const [tenant, before] of this.#cores) {
      const left = before * remembered;
      if (left > Math.max(1, cores.get(tenant) ?? 0)) cores.set(tenant, left);
    }
    this.#lastLook = now;
    this.#wantedMs = new Map(threads.map(({ tid, wantedMs }) => [tid, wantedMs]));
    this.#cores = cores;
    return cores;
  }
}

/** Together, the threads of a tenant that wants n cores weigh 1/n as much as a tenant that wants one core. */
function stepsBack(cores: number): number {
  return Math.ceil(Math.log(Math.max(1, cores) ** 2) / Math.log(stepOfNiceness));
}

/** False if the thread has ended, or this process lacks the right. */
function setNiceness(tid: number, niceness: number): boolean {
  try {
    setPriority(tid, niceness);
    return true;
  } catch {
    return false;
  }
}

/** Undefined if the server is not on this machine. */
function processIn(pidFile: string): { pid: number; niceness: number } | undefined {
  const pid = Number(read(pidFile)?.trim());
  // A process that has ended has no threads.
  return pid > 0 && existsSync(`/proc/${pid}/task`) ? { pid, niceness: getPriority(pid) } : undefined;
}

/** Undefined if the thread has ended, or the kernel keeps no such statistics. */
function wantedMsOf(pid: number, tid: number): number | undefined {
  const [ran, waited] = read(`/proc/${pid}/task/${tid}/schedstat`)?.split(' ') ?? [];
  const wantedMs = (Number(ran) + Number(waited)) / 1e6;
  return Number.isFinite(wantedMs) ? wantedMs : undefined;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
