import { missingDesktopPackages } from '../../stack/desktops.ts';
import { StackError } from '../../stack/errors.ts';
import { canInstall, installPackages } from '../../stack/install.ts';
import { createStackContext } from './stackContext.ts';

/**
 * Makes sure that this machine has an X server for desktops. Root on Debian or Ubuntu installs it. Elsewhere the test
 * fails, and says what to install.
 */
export async function getDesktopPrograms(): Promise<void> {
  const context = createStackContext();
  const missing = missingDesktopPackages(context);
  if (missing.length === 0) return;
  if (!canInstall(context)) {
    throw new StackError(`This test needs an X server (Debian and Ubuntu: apt-get install ${missing.join(' ')}).`);
  }
  await installPackages(context, missing, 'desktops, for tests');
}
