import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../../stack/context.ts';

const folder = join(import.meta.dirname, '..', '..', '..', 'integrations', 'computers', 'drivefs');
const go = findProgram('go', process.env);

function whyNot(): string | undefined {
  if (go === undefined) return 'Go is missing';
  if (!existsSync('/dev/fuse')) return 'there is no /dev/fuse';
  if (process.getuid?.() !== 0 && findProgram('fusermount3', process.env) === undefined)
    return 'only root can mount without fusermount3';
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
  } catch {
    return 'this user may not use /dev/fuse';
  }
  return undefined;
}

const missing = whyNot();

/** The tests of the drive of computers, in Go, beside its source. They mount it. */
if (go === undefined || missing !== undefined) {
  process.stderr.write(`\nNOT RUN: the tests of the drive of computers in Go: ${missing}\n`);
  test(`The tests of the drive of computers do not run on this machine: ${missing}`, () =>
    expect(missing).not.toBe(''));
} else {
  test('The drive of computers passes its own tests', async () => {
    // As in its build, they need no C compiler.
    const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
    const { failure } = await promisify(execFile)(go, ['test', '-timeout', '240s', '.'], { cwd: folder, env }).then(
      () => ({ failure: '' }),
      (error: Error & { stdout?: string; stderr?: string }) => ({
        failure: `${error.message}\n${error.stdout}${error.stderr}`,
      }),
    );
    expect(failure).toBe('');
  }, 300_000);
}
