import { readdirSync, readFileSync } from 'node:fs';
import { missingForDrives } from '../../integrations/computers/host/drives/drivePlaces.ts';
import { ifThere } from '../../integrations/computers/system/ifThere.ts';
import { waitFor } from '../support/waitFor.ts';
import type { ChatUser } from './chat.ts';
import type { TestComputer } from './computer.ts';

/** Why computers of this machine cannot have the drive. Undefined if they can. */
export const missingDrive = process.getuid?.() === 0 ? missingForDrives() : 'this run is not root';

export interface DriveInComputer {
  state: 'on' | 'off' | 'unavailable';
  access: 'write' | 'read' | 'none' | null;
  pendingFiles: number;
  error: string | null;
}

/** The drive of a computer, once it is as expected. */
export function driveIn(
  computer: TestComputer,
  isExpected: (drive: DriveInComputer) => boolean = ({ state }) => state === 'on',
): Promise<DriveInComputer> {
  return waitFor('the drive in the computer', async () => {
    const { drive } = await computer.expect<{ drive: DriveInComputer }>(200, 'GET', '');
    return isExpected(drive) && drive;
  });
}

/** What a command prints, once that matches. */
export function seen(computer: TestComputer, command: string, pattern: RegExp): Promise<string> {
  return waitFor(`${command} to print ${pattern}`, async () => {
    const { stdout, stderr } = await computer.exec(command);
    return pattern.test(stdout + stderr) && stdout + stderr;
  });
}

/** The pids of the programs that mount drives, of the hosts in a folder. */
export function drivePrograms(dir: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const command = /^\d+$/.test(name) ? ifThere(() => readFileSync(`/proc/${name}/cmdline`, 'utf8')) : undefined;
    return command?.includes('atrium-drivefs') && command.includes(dir) ? [Number(name)] : [];
  });
}

/** Makes a further computer of this user's, in a space. */
export async function newComputer(user: ChatUser, body: object, spaceId = user.spaceId): Promise<string> {
  const response = await user.fetch(`/api/spaces/${spaceId}/computers`, { method: 'POST', body });
  const { id } = (await response.json()) as { id: string };
  return id;
}
