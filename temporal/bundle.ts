import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';

const root = join(import.meta.dirname, '..');
const entry = join(root, 'workflows', 'index.ts');

/** Interceptors of all workflows. */
export const workflowInterceptors = [join(root, 'workflows', 'unknownActivities.ts')];

/** Evaluated once per sandbox, not once per workflow. None of them keeps state (`test/workflows/state.test.ts`). */
const preloadModules = ['@temporalio/workflow', '@temporalio/common', entry];

/** Errors only: the bundler's progress is noise. */
const quietly = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };

/**
 * The workflows as one script for Temporal's sandbox. Building it takes seconds, so it is cached in `cacheDir` under a
 * hash of its sources. The file starts with a hash of the script: a damaged file is built again.
 */
export async function bundleWorkflows(cacheDir: string): Promise<WorkflowBundle> {
  const cached = join(cacheDir, `workflows-${await hashSources()}.js`);
  const kept = readKept(cached);
  if (kept !== undefined) return { code: kept };
  const { code } = await bundleWorkflowCode({
    workflowsPath: entry,
    workflowInterceptorModules: workflowInterceptors,
    logger: quietly,
    preloadModules,
  });
  try {
    mkdirSync(cacheDir, { recursive: true });
    const unfinished = `${cached}.${process.pid}`;
    writeFileSync(unfinished, `${checksum(code)}\n${code}`);
    renameSync(unfinished, cached);
  } catch {
    // A worker does not need a writable folder. Without one, each start builds the script.
  }
  return { code };
}

/** The cached script; undefined if it is missing or damaged. */
function readKept(file: string): string | undefined {
  try {
    const text = readFileSync(file, 'utf8');
    const end = text.indexOf('\n');
    const code = text.slice(end + 1);
    return text.slice(0, end) === checksum(code) ? code : undefined;
  } catch {
    return undefined; // not built yet
  }
}

const checksum = (code: string) => createHash('sha256').update(code).digest('hex');

async function hashSources(): Promise<string> {
  const hash = createHash('sha256');
  const files = await Array.fromAsync(glob(['workflows/**/*.ts', 'temporal/*.ts'], { cwd: root }));
  for (const file of files.sort()) hash.update(file).update(await readFile(join(root, file)));
  const sdk = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string };
  return hash.update(sdk.version).digest('hex').slice(0, 16);
}
