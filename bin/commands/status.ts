import type { Command } from 'commander';
import { findUnfinished } from '../../backup/restore/journal.ts';
import { loadLaunchConfig } from '../../config/launch.ts';
import { type HostUse, hostsInUse } from '../../models/computers/removedHosts.ts';
import { installationOf } from '../../models/installation/installation.ts';
import { columns, print } from '../support/answer.ts';
import { notRunning, withDatabase } from '../support/installation.ts';
import { describeQuiet } from '../support/quiet.ts';
import { findRunning, type RunningAtrium } from '../support/running.ts';
import { hostsToJson, hostsToRows } from './host.ts';

const answerTimeoutMs = 3_000;

/** `atrium status`: what runs with this data directory. Exit code 0 when it runs and is ready, else 1. */
export function addStatus(program: Command): void {
  program
    .command('status')
    .description('show what runs here')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const { dataDir } = loadLaunchConfig();
      const running = findRunning(dataDir);
      const ready = running?.apiUrl !== undefined && (await isReady(running.apiUrl));
      if (!ready) process.exitCode = 1;
      const hosts = ready ? await findHosts() : [];
      const quietSince = ready ? await findQuiet() : null;
      const restore = running === undefined ? findUnfinished(dataDir) : undefined;
      print(command, {
        json: { ...toJson(running, ready, { hosts, quietSince }), ...(restore !== undefined && { restore }) },
        text: restore ?? toText(running, ready, { hosts, quietSince }),
      });
    });
}

async function isReady(apiUrl: string): Promise<boolean> {
  try {
    return (await fetch(new URL('/readyz', apiUrl), { signal: AbortSignal.timeout(answerTimeoutMs) })).ok;
  } catch {
    return false;
  }
}

/** The hosts. Empty where they cannot be read, so that the status is shown in any case. */
async function findHosts(): Promise<HostUse[]> {
  return withDatabase((database, config) => hostsInUse({ database, config })).catch(() => []);
}

/** The time since which the installation is quiet. Null where it is not, or where that cannot be read. */
async function findQuiet(): Promise<Date | null> {
  return withDatabase(async (database) => (await installationOf(database)).quietSince).catch(() => null);
}

/** Facts from the database of an Atrium that is ready. */
interface Found {
  hosts: readonly HostUse[];
  quietSince: Date | null;
}

/** Without `environment`: it holds passwords. */
function toJson(running: RunningAtrium | undefined, ready: boolean, { hosts, quietSince }: Found) {
  if (running === undefined) return { state: 'stopped', ready };
  const { process, state, startedAt, parts, apiUrl } = running;
  return { state, ready, pid: process.pid, startedAt, apiUrl, parts, hosts: hostsToJson(hosts), quietSince };
}

function toText(running: RunningAtrium | undefined, ready: boolean, { hosts, quietSince }: Found): string {
  if (running === undefined) return notRunning().message;
  const { ATRIUM_TEMPORAL_UI_URL: uiUrl } = running.environment;
  const state = running.state === 'running' && !ready ? 'running, but not ready' : running.state;
  return columns([
    ['Atrium', `${state} (process ${running.process.pid}, since ${running.startedAt})`],
    ...(quietSince === null ? [] : [['quiet', describeQuiet(quietSince)] as const]),
    ...(running.apiUrl === undefined ? [] : [['api', running.apiUrl] as const]),
    ...running.parts.map((part) => [part.name, `${part.address} (process ${part.pid})`] as const),
    ...(uiUrl === undefined ? [] : [['temporal ui', uiUrl] as const]),
    ...hostsToRows(hosts).map(([id, detail]) => ['host of computers', `${id} ${detail}`] as const),
  ]);
}
