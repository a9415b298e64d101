import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../../stack/context.ts';

const folder = join(import.meta.dirname, '..', '..', '..', 'integrations', 'computers', 'agent');
const go = findProgram('go', process.env);
const missing = go === undefined ? 'Go is missing' : process.platform === 'linux' ? undefined : 'this is not Linux';

/** The agent's own tests, in Go, beside its source. */
if (go === undefined || missing !== undefined) {
  process.stderr.write(`\nNOT RUN: the tests of the agent in Go: ${missing}\n`);
  test(`The agent's own tests do not run on this machine: ${missing}`, () => expect(missing).not.toBe(''));
} else {
  test('The agent passes its own tests', async () => {
    // As in its build, they need no C compiler.
    const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
    const { failure } = await promisify(execFile)(go, ['test', '-timeout', '60s', '.'], { cwd: folder, env }).then(
      () => ({ failure: '' }),
      (error: Error & { stdout?: string; stderr?: string }) => ({
        failure: `${error.message}\n${error.stdout}${error.stderr}`,
      }),
    );
    expect(failure).toBe('');
  });
}
