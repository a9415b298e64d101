import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../../config/index.ts';
import type { Database } from '../../../models/database/database.ts';
import { actorWorkflowId } from '../../../temporal/workflowIds.ts';
import { buildComputer, type TestComputer } from '../../builders/computer.ts';
import { shutDownHost } from '../../support/computerPrograms.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

/**
 * Runs a scenario of a session on a space's default computer, on its own host. `endedId` finds the session after its
 * end.
 */
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
      const id = await waitFor('the session to end', () => endedId(pool));
      // The product uses the folder until it has closed.
      const left = dir;
      process.once('beforeExit', () => void remove(left));
      return actorWorkflowId(kind, id);
    },
  };
}

async function remove(dir: string): Promise<void> {
  await shutDownHost(dir);
  rmSync(dir, { recursive: true, force: true });
}
