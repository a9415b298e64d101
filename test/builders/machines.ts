import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { isMounted } from '../../integrations/computers/host/disks/btrfs.ts';
import { removeDataDir } from '../../stack/folders.ts';
import type { FakeProvider } from '../fakes/openaiServer.ts';
import { runAtrium, startAtrium } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';
import { pidsWith, type TestProcess, until } from '../support/processes.ts';
import { hurriedSweeper, productSettings } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';
import { asUser, type ChatUser } from './chat.ts';

// Installations as `npm start` runs them, each in its own folder, with computers.

export type MachineSettings = Record<string, string> & { ATRIUM_DATA_DIR: string };

export const machineSettings = (dataDir: string, provider: Pick<FakeProvider, 'url'>) => ({
  ...productSettings(provider.url),
  ...hurriedSweeper,
  ATRIUM_DATA_DIR: dataDir,
  ATRIUM_PORT: '0',
  ATRIUM_COMPUTERS: 'auto',
  ATRIUM_COMPUTERS_DRIVERS: 'bubblewrap',
});

const machines: string[] = [];

export function newMachine(): string {
  const dataDir = temporaryFolder();
  machines.push(dataDir);
  return dataDir;
}

/** Call this after a test, before its folders are removed. */
export async function loseAll(): Promise<void> {
  for (const dataDir of machines.splice(0)) await lose(dataDir);
}

export interface Machine {
  dataDir: string;
  process: TestProcess;
  url: string;
  user: ChatUser;
  run(...args: string[]): ReturnType<typeof runAtrium>;
}

export async function startOn(settings: MachineSettings): Promise<Machine> {
  const { ATRIUM_DATA_DIR: dataDir } = settings;
  const process = startAtrium(['up', '--json'], settings);
  await process.printed(/"apiUrl"/);
  const { apiUrl: url } = JSON.parse(process.stdout()) as { apiUrl: string };
  const run = (...args: string[]) => runAtrium(args, settings);
  const token = (await run('token')).stdout.trim();
  const nobody = asUser({ url }, { id: '', email: '', token, spaceId: '' });
  const me = await nobody.get<{ id: string; email: string; spaces: { id: string }[] }>('/api/me');
  const user = asUser({ url }, { id: me.id, email: me.email, token, spaceId: me.spaces[0]?.id ?? '' });
  return { dataDir, process, url, user, run };
}

/** Kills all processes of the machine, including computers, and removes its data. */
export async function lose(dataDir: string): Promise<void> {
  for (let pids = pidsWith(dataDir); pids.length > 0; pids = pidsWith(dataDir)) {
    for (const pid of pids) endProcess(pid);
    await until(() => pids.every((pid) => !pidsWith(dataDir).includes(pid)));
  }
  const homes = join(dataDir, 'services', 'computers', '.homes');
  if (isMounted(homes)) execFileSync('umount', ['--lazy', homes]);
  // Processes without the folder in their command line, such as those of a computer, may end a moment later.
  await waitFor('the folder to be gone', async () => {
    try {
      removeDataDir(dataDir);
      return true;
    } catch {
      return false;
    }
  });
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended meanwhile.
  }
}
