import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { type Mutation, mutated, mutations } from '../test/mutations/list.ts';

/*
 * `npm run mutations [PART OF A NAME…]`: makes each fault of test/mutations/list.ts in a clone of the current commit,
 * and runs the test that must notice it. Exits with 1 if one is not caught or no longer applies.
 */
const root = path.resolve(import.meta.dirname, '..');
/** Tests have time limits of their own. This one is against hanging. */
const longestRunMs = 900_000;

interface FileResult {
  name: string;
  status: 'passed' | 'failed';
  assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
}

const parts = process.argv.slice(2).map((part) => part.toLowerCase());
const chosen = mutations.filter(
  ({ name }) => parts.length === 0 || parts.some((part) => name.toLowerCase().includes(part)),
);
if (chosen.length === 0) {
  console.error('No mutation in test/mutations/list.ts has such a name.');
  process.exit(1);
}

let running: ChildProcess | undefined;
let isStopped = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isStopped = true;
    running?.kill(signal);
  });
}

const folder = mkdtempSync(path.join(tmpdir(), 'atrium-mutations-'));
const clone = path.join(folder, 'atrium');
try {
  const caught = await runAll();
  console.log(`${caught} of ${chosen.length} mutations were caught.`);
  process.exitCode = caught === chosen.length ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function runAll(): Promise<number> {
  execFileSync('git', ['clone', '--quiet', '--shared', root, clone]);
  symlinkSync(path.join(root, 'node_modules'), path.join(clone, 'node_modules'));
  const commit = execFileSync('git', ['log', '-1', '--format=%h %s'], { cwd: clone, encoding: 'utf8' });
  const files = [...new Set(chosen.map(({ caughtBy }) => caughtBy))];
  console.log(`The commit is ${commit.trim()}. Running ${files.length} test files without a mutation first …`);
  const sound = new Set((await runTests(files)).filter(({ status }) => status === 'passed').map(({ name }) => name));
  let caught = 0;
  for (const mutation of chosen) {
    const begunAtMs = performance.now();
    const found = await tryOut(mutation, sound.has(path.join(clone, mutation.caughtBy)));
    if (isStopped) break;
    if (found.verdict === 'caught') caught++;
    const seconds = String(Math.round((performance.now() - begunAtMs) / 1_000)).padStart(4);
    console.log(`${found.verdict.padEnd(11)} ${seconds} s  ${mutation.name}\n${' '.repeat(20)}${found.why}`);
  }
  return caught;
}

/** Makes the fault, runs its test, and takes the fault back. */
async function tryOut(mutation: Mutation, isSound: boolean): Promise<{ verdict: string; why: string }> {
  const { file, caughtBy } = mutation;
  const source = readFileSync(path.join(clone, file), 'utf8');
  const changed = mutated(source, mutation);
  if (changed === undefined) return { verdict: 'NOT APPLIED', why: `${file} does not have the piece exactly once` };
  if (!isSound) return { verdict: 'NOT TRIED', why: `${caughtBy} fails without the mutation` };
  writeFileSync(path.join(clone, file), changed);
  const results = await runTests([caughtBy]);
  writeFileSync(path.join(clone, file), source);
  const tests = results.flatMap(({ assertionResults }) => assertionResults);
  const by = tests.find(hasFailedAssertion);
  if (by !== undefined) return { verdict: 'caught', why: by.fullName };
  const failure = tests.find(({ status }) => status === 'failed')?.failureMessages[0];
  if (failure !== undefined) {
    const [line = ''] = stripVTControlCharacters(failure).split('\n');
    return { verdict: 'NOT CAUGHT', why: `${caughtBy} fails without a failed assertion: ${line}` };
  }
  const isPassed = results.some(({ status }) => status === 'passed');
  return { verdict: 'NOT CAUGHT', why: `${caughtBy} ${isPassed ? 'passes' : 'does not run'}` };
}

/** A test that only waited too long, or whose preparation failed, proves nothing about the fault. */
function hasFailedAssertion({ status, failureMessages }: FileResult['assertionResults'][number]): boolean {
  return status === 'failed' && failureMessages.some((text) => stripVTControlCharacters(text).includes('expect('));
}

/** Runs test files of the clone. Empty if the run itself came to nothing. */
async function runTests(files: readonly string[]): Promise<FileResult[]> {
  if (isStopped) return [];
  const output = path.join(folder, 'results.json');
  rmSync(output, { force: true });
  // Few at a time: a test that runs out of time would count for nothing.
  const options = ['--ci', '--forceExit', '--maxWorkers=2', '--json', `--outputFile=${output}`];
  // As `npm test` does. npm itself would end before its script when it gets a signal.
  const args = ['bin/bootstrap.mjs', 'test', ...options, ...files];
  running = spawn(process.execPath, args, { cwd: clone, stdio: 'ignore', timeout: longestRunMs });
  await once(running, 'close');
  try {
    return (JSON.parse(readFileSync(output, 'utf8')) as { testResults: FileResult[] }).testResults;
  } catch {
    return [];
  }
}
