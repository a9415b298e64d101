import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rehearse } from '../../../integrations/computers/holder/rehearse.ts';
import { installBundle } from '../../../integrations/computers/programs/install.ts';
import { prepareAgent } from '../../../integrations/computers/programs/prepare.ts';
import { agentProgram } from '../../support/computerPrograms.ts';
import { inFull } from '../../support/inFull.ts';

const full = inFull('computers');

const root = join(import.meta.dirname, '..', '..', '..');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atrium-programs-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Prepares the holder in its own process, as a host does. `said` is what an operator would see. */
function prepare(): Promise<{ said: string; given: unknown }> {
  const url = pathToFileURL(join(root, 'integrations', 'computers', 'programs', 'prepare.ts')).href;
  const script = `const { prepareHolder } = await import('${url}');
    process.stdout.write(JSON.stringify(await prepareHolder(${JSON.stringify(folder)})));`;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--input-type=module', '-e', script], { env: {} }, (error, stdout, stderr) => {
      if (error === null) resolve({ said: stderr, given: JSON.parse(stdout) });
      else reject(error);
    });
  });
}

test('the holder is made without output to the operator, with all its modules and no temporary files', async () => {
  const { said, given } = await prepare();
  expect(said).toBe('');
  expect(existsSync((given as string[]).at(-1) ?? '')).toBe(true);
  expect(readdirSync(folder).toSorted()).toEqual([
    'holder.cjs',
    'holder.cjs.sources',
    'screens.cjs',
    'screens.cjs.sources',
    'xterm-addon-serialize.cjs',
    'xterm-headless.cjs',
  ]);
});

test('the agent is a static program, which every user may run and no file accompanies', async () => {
  const command = await prepareAgent(folder, await agentProgram());
  expect(command).toEqual(['/opt/atrium/agent']);
  expect(readdirSync(folder)).toEqual(['agent']);
  expect(statSync(join(folder, 'agent')).mode & 0o777).toBe(0o755);
  // A program with an interpreter, such as the C library's, needs it in each image.
  expect(readFileSync(join(folder, 'agent')).includes('ld-linux')).toBe(false);
});

test('a program is made again only if it or its sources have changed', async () => {
  const entry = join(folder, 'entry.ts');
  const out = join(folder, 'out');
  mkdirSync(out);
  writeFileSync(entry, `import { say } from './part.ts';\nsay('first' as string);\n`);
  const write = (text: string) =>
    writeFileSync(join(folder, 'part.ts'), `export function say(what: string) {\n  console.log(what, '${text}');\n}\n`);
  const made = async () => {
    await installBundle(entry, out, 'program.cjs');
    return statSync(join(out, 'program.cjs')).mtimeMs;
  };
  write('a');
  const first = await made();
  expect(await made()).toBe(first);
  write('b');
  expect(await made()).not.toBe(first);
  expect(readFileSync(join(out, 'program.cjs'), 'utf8')).toContain(`'b'`);
  writeFileSync(join(out, 'program.cjs'), 'damaged');
  await made();
  expect(readFileSync(join(out, 'program.cjs'), 'utf8')).toContain(`'b'`);
});

test('a program is made again for another release of Atrium, while the earlier one still exists', async () => {
  const out = join(folder, 'out');
  for (const release of ['first', 'second']) {
    mkdirSync(join(folder, release));
    writeFileSync(join(folder, release, 'entry.ts'), `process.stdout.write('${release}');\n`);
  }
  mkdirSync(out);
  for (const release of ['first', 'second']) {
    await installBundle(join(folder, release, 'entry.ts'), out, 'program.cjs');
    expect(readFileSync(join(out, 'program.cjs'), 'utf8')).toContain(release);
  }
});

test('a spare holder rehearses a start completely, and leaves no files', async () => {
  const place = join(folder, 'rehearsal');
  expect(await rehearse(place)).toBe(true);
  expect(existsSync(place)).toBe(false);
});

full.test('an agent outside of a sandbox ends with its channel, and kills no other process', async () => {
  // Use a PID namespace in which the agent is not one of the first processes, so that a mistake kills nothing else.
  const script = `i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i + 1)); done
    sleep 60 & other=$!
    "$0" < /dev/null > /dev/null
    kill -0 $other && echo spared`;
  const namespace = ['--unshare-pid', '--dev-bind', '/', '/', '--proc', '/proc'];
  const args = [...namespace, '--', '/bin/sh', '-c', script, await agentProgram()];
  const printed = await new Promise((resolve, reject) => {
    execFile('bwrap', args, { timeout: 60_000 }, (error, stdout) => (error === null ? resolve(stdout) : reject(error)));
  });
  expect(printed).toBe('spared\n');
});
