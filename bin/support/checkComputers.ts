import type { LaunchConfig } from '../../config/launch.ts';
import { describeMachine } from '../../integrations/computers/host/describeMachine.ts';
import { describeSandboxPrograms } from '../../stack/computers.ts';
import { type CheckResult, off, ok } from './check.ts';

/**
 * Whether computers can run on this machine, and which limits would not hold. Nothing else needs them, so nothing here
 * is a fault.
 */
export async function checkComputers(launch: LaunchConfig): Promise<CheckResult> {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const programs = describeSandboxPrograms(launch);
  const { refused, off: missing } = await describeMachine(launch.computersDir);
  if (refused !== undefined) return off(programs.missing ? `sandboxes: ${programs.detail}` : refused);
  if (missing.length > 0) return off(`they run, but ${missing.join('; ')}`);
  return ok('each with a user of its own and limits of CPU, memory, tasks and disk');
}
