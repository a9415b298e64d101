import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';

const root = join(import.meta.dirname, '..');
const entry = join(root, 'workflows', 'index.ts');

/** Evaluated once per sandbox instead of once per workflow: none of them keeps state (`test/workflows/state.test.ts`). */
const preloadModules = ['@temporalio/workflow', '@temporalio/common', entry];

/** Errors only: the bundler's progress is noise. */
const quietly = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };

/**
 * The workflows as one script for Temporal's sandbox. Building it takes seconds, so it is kept in `cacheDir` under a
 * hash of everything that it is made of.
 */
export async function bundleWorkflows(cacheDir: string): Promise<WorkflowBundle> {
  const cached = join(cacheDir, `workflows-${await hashSources()}.js`);
  try {
    return { code: readFileSync(cached, 'utf8') };
  } catch {
    // Not built yet.
  }
  const { code } = await bundleWorkflowCode({ workflowsPath: entry, logger: quietly, preloadModules });
  mkdirSync(cacheDir, { recursive: true });
  const unfinished = `${cached}.${process.pid}`;
  writeFileSync(unfinished, code);
  renameSync(unfinished, cached);
  return { code };
}

async function hashSources(): Promise<string> {
  const hash = createHash('sha256');
  const files = await Array.fromAsync(glob(['workflows/**/*.ts', 'temporal/*.ts'], { cwd: root }));
  for (const file of files.sort()) hash.update(file).update(await readFile(join(root, file)));
  const sdk = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string };
  return hash.update(sdk.version).digest('hex').slice(0, 16);
}
