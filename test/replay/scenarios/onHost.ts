import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../../config/index.ts';
import { createHost } from '../../../integrations/computers/host/createHost.ts';
import type { Database } from '../../../models/database/database.ts';
import { actorWorkflowId } from '../../../temporal/workflowIds.ts';
import { buildComputer, type TestComputer } from '../../builders/computer.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

/** Walks a path of a session on a space's default computer, on a host of its own; `endedId` finds it when it has ended. */
export function onHost(
  walk: (computer: TestComputer) => Promise<void>,
  endedId: (pool: Database['pool']) => Promise<string | undefined>,
  kind: string,
  more: Environment = {},
): Pick<Scenario, 'environment' | 'run'> {
  let dir = '';
  return {
    environment() {
      dir = mkdtempSync(join(tmpdir(), 'atrium-hosted-'));
      chmodSync(dir, 0o755);
      return Promise.resolve({ ATRIUM_COMPUTERS: 'auto', ATRIUM_COMPUTERS_DIR: dir, ...more });
    },
    async run(product, user) {
      await walk(await buildComputer(product, user));
      const { pool } = product.environment.database;
      const id = await waitFor('the end', () => endedId(pool));
      // The host is the product's until that has closed.
      const left = dir;
      process.once('beforeExit', () => void remove(left));
      return actorWorkflowId(kind, id);
    },
  };
}

async function remove(dir: string): Promise<void> {
  await (await createHost({ dir })).shutdown();
  rmSync(dir, { recursive: true, force: true });
}
