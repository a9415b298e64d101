import { missingBrowserPackages } from '../../stack/browsers.ts';
import { StackError } from '../../stack/errors.ts';
import { canInstall, installPackages } from '../../stack/install.ts';
import { createStackContext } from './stackContext.ts';

/**
 * Makes sure that this machine has a Chromium for browsers. Root on Debian or Ubuntu installs it. Elsewhere the test
 * fails, and says what to install.
 */
export async function getBrowserPrograms(): Promise<void> {
  const context = createStackContext();
  const missing = missingBrowserPackages(context);
  if (missing.length === 0) return;
  if (!canInstall(context)) {
    throw new StackError(`This test needs a Chromium (Debian and Ubuntu: apt-get install ${missing.join(' ')}).`);
  }
  await installPackages(context, missing, 'browsers, for tests');
}
