import mysql from 'mysql2/promise';
import type { Config } from '../../config/index.ts';
import type { LaunchConfig } from '../../config/launch.ts';
import { findPrivateNetwork } from '../../stack/gate/privateNetwork.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';
import type { RunningAtrium } from './running.ts';

/** An upper bound. `runChecks` has a shorter limit of its own. */
const timeoutMs = 60_000;

/** Whether other users of this machine can control the embedded Temporal server. Before a start: whether they could. */
export function checkTemporalAccess(launch: LaunchConfig, running: RunningAtrium | undefined): CheckResult {
  const network = findPrivateNetwork(launch.environment);
  const couldBeOpen = 'missing' in network ? network.missing : undefined;
  const part = running?.parts.find(({ name }) => name === 'temporal');
  const openBecause = part === undefined ? couldBeOpen : part.openBecause;
  if (openBecause === undefined) return ok('only this user’s processes, and browsers with the printed link');
  return off(`every user of this machine can give the embedded server orders, and its UI is off: ${openBecause}`);
}

/** Whether the embedded database requires the password. */
export async function checkDatabaseAccess({ database }: Pick<Config, 'database'>): Promise<CheckResult> {
  for (const user of ['root', decodeURIComponent(new URL(database.url).username), '']) {
    const url = new URL(database.url);
    url.username = user;
    url.password = '';
    if (await letsIn(url)) return wrong(`the embedded server lets in "${user}" without a password`);
  }
  return ok('by password only, from this machine');
}

async function letsIn(url: URL): Promise<boolean> {
  try {
    const connection = await mysql.createConnection({ uri: url.href, connectTimeout: timeoutMs });
    await connection.end();
    return true;
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ER_ACCESS_DENIED_ERROR' || code === 'ER_ACCESS_DENIED_NO_PASSWORD_ERROR') return false;
    throw error;
  }
}

/**
 * Whether the embedded object store refuses requests without a key, and keeps pages of other origins from reading its
 * answers.
 */
export async function checkStorageAccess({ storage }: Pick<Config, 'storage'>): Promise<CheckResult> {
  const bucket = new URL(`/${storage.bucket}?list-type=2`, storage.endpoint);
  const answer = await fetch(bucket, {
    headers: { origin: 'https://elsewhere.example' },
    signal: AbortSignal.timeout(timeoutMs),
  });
  await answer.body?.cancel();
  if (answer.status !== 403) return wrong(`a request without a key is answered with ${answer.status}`);
  const allowed = answer.headers.get('access-control-allow-origin');
  if (allowed === null) return ok('by signed requests only');
  return wrong(`pages of ${allowed} may read its answers`);
}
