import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { exportStatement } from '../../../models/secrets/exports.ts';
import { isReservedName } from '../../../models/secrets/names.ts';
import { findProgram } from '../../../stack/context.ts';
import { canInstall, installPackages } from '../../../stack/install.ts';
import { createStackContext } from '../../support/stackContext.ts';

// The statements of `secrets/env`, run by the shells they are for.

const shells = ['sh', 'bash', 'zsh'] as const;
const values = 1_000;
const bare = { PATH: process.env.PATH ?? '' };

beforeAll(async () => {
  const context = createStackContext();
  const missing = shells.filter((shell) => findProgram(shell, process.env) === undefined);
  if (missing.length > 0 && canInstall(context)) await installPackages(context, missing, 'the shells');
  const still = shells.filter((shell) => findProgram(shell, process.env) === undefined);
  if (still.length > 0) throw new Error(`This test needs ${still.join(' and ')}: apt-get install ${still.join(' ')}`);
});

/** Texts that are difficult for shells, quoting and encodings, among others. */
const awkward = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({
    unit: fc.constantFrom("'", '"', '\\', '$', '`', '\n', '\r', '\t', '!', ' ', '*', '\x1b', 'é', '😀'),
    maxLength: 40,
  }),
  fc.constantFrom(
    '',
    "'",
    "''",
    "'\\''",
    '\n\n',
    '$(rm -rf /)',
    '`id`',
    '$HOME',
    '!!',
    '\\',
    "\\'",
    '-n',
    '\x83\x9d',
    '\ufeff',
  ),
);

test.each(shells)('%s gives back 1,000 random values unchanged', (shell) => {
  const given = fc
    .sample(awkward, { numRuns: values, seed: 7 })
    .map((value) => value.replaceAll('\0', ''))
    .filter((value) => value.isWellFormed());
  expect(given.length).toBeGreaterThan(values * 0.9);
  const statements = given.map((value, index) => exportStatement(`V${index}`, value));
  // The shell only exports; another program reads the environment and reports the result.
  const tell = 'for (let i = 0; i < +process.argv[1]; i++) process.stdout.write(process.env["V" + i] + "\\0")';
  const script = `${statements.join('\n')}\nexec "${process.execPath}" -e '${tell}' ${given.length}\n`;
  const output = execFileSync(shell, shell === 'bash' ? ['--norc'] : [], {
    input: script,
    env: { ...bare, LC_ALL: 'C.UTF-8' },
    maxBuffer: 1 << 26,
  });
  expect(output.toString('utf8').split('\0').slice(0, -1)).toEqual(given);
});

test.each(shells)('%s evals a statement of 64 KiB', (shell) => {
  const value = "'\n$x".repeat(16_384);
  const script = `eval "$(cat)"; printf %s "$V"`;
  const output = execFileSync(shell, ['-c', script], { input: exportStatement('V', value), env: bare });
  expect(output.toString('utf8') === value).toBe(true);
});

test.each([
  ['sh', 'set | sed -n "s/=.*//p"'],
  ['bash', 'compgen -v'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is zsh's own.
  ['zsh', 'zmodload zsh/parameter; print -rl -- ${(k)parameters}'],
])('A secret cannot have the name of a variable that %s itself uses', (shell, script) => {
  const flags = shell === 'zsh' ? ['-f', '-c'] : shell === 'bash' ? ['--norc', '--noprofile', '-c'] : ['-c'];
  const names = execFileSync(shell, [...flags, script], { env: bare, encoding: 'utf8' })
    .split('\n')
    .filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  expect(names.length).toBeGreaterThan(3);
  expect(names.filter((name) => !isReservedName(name))).toEqual([]);
});
