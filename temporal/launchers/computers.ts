import { computer } from '../../workflows/computers/computer.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { hostTaskQueue } from '../taskQueues.ts';

export function createComputerLauncher({ config, kit }: LauncherParts) {
  const computers = kit.actor(computer, {
    inputOf: (computerId, limits) => ({ computerId, queuePrefix: hostTaskQueue(config.installation, ''), ...limits }),
    summary: 'Computer',
  });
  return {
    startComputer: computers.tell,
    interruptComputer: computers.interrupt,
    runningComputers: computers.running,
  };
}
