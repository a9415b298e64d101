import { findProgram } from '../../stack/context.ts';
import { StackError } from '../../stack/errors.ts';
import { canInstall, installPackages } from '../../stack/install.ts';
import { createStackContext } from './stackContext.ts';

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/**
 * The path of a real Chromium for tests. Root on Debian or Ubuntu installs it. Elsewhere the test fails, and says what
 * to install.
 */
export async function getChromium(): Promise<string> {
  const found = find();
  if (found !== undefined) return found;
  const context = createStackContext();
  if (!canInstall(context)) throw missing();
  await installPackages(context, ['chromium'], 'Chromium, for tests');
  const installed = find();
  if (installed === undefined) throw missing();
  return installed;
}

function find(): string | undefined {
  return names.map((name) => findProgram(name, process.env)).find((path) => path !== undefined);
}

function missing(): StackError {
  return new StackError('This test needs Chromium. Install it (Debian and Ubuntu: apt-get install chromium).');
}
