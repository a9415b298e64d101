import { forgetRemovedApps } from '../../models/apps/removal.ts';
import type { CommonDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';

export type AppDeps = CommonDeps;

export function createAppSweeps({ database }: Pick<AppDeps, 'database'>) {
  return {
    /** Leaves nothing of apps that were removed. */
    async sweepRemovedApps(): Promise<number> {
      using _heartbeat = keepAlive();
      return forgetRemovedApps(database);
    },
  };
}

export const appSweeps = ['sweepRemovedApps'] as const satisfies readonly (keyof ReturnType<typeof createAppSweeps>)[];
