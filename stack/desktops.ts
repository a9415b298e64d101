import { findProgram, type StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { canInstall, installPackages } from './install.ts';

/** What desktops on computers need, by program: computers see the programs of this machine. */
const packages = {
  Xtigervnc: 'tigervnc-standalone-server',
  xkbcomp: 'x11-xkb-utils',
  openbox: 'openbox',
  xrandr: 'x11-xserver-utils',
  xterm: 'xterm',
  xclip: 'xclip',
} as const;
/** What has no program: keyboards, and letters to read. */
const further = ['xkb-data', 'fonts-dejavu-core'];

type Program = keyof typeof packages;

/** The packages that are not here. What has no program comes with the first that has one. */
export function missingDesktopPackages({ environment }: Pick<StackContext, 'environment'>): string[] {
  const programs = Object.keys(packages) as Program[];
  const missing = programs
    .filter((program) => findProgram(program, environment) === undefined)
    .map((program) => packages[program]);
  return missing.length === 0 ? [] : [...missing, ...further];
}

/** Installs what desktops need, where root may do so. Without it everything else works: what fails here is reported. */
export async function prepareDesktops(context: StackContext): Promise<void> {
  const missing = missingDesktopPackages(context);
  if (process.platform !== 'linux' || missing.length === 0 || !canInstall(context)) return;
  try {
    await installPackages(context, missing, 'desktops for computers');
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof StackError)) throw error;
    context.report(`${error.message}. Computers have no desktops.`);
  }
}

/** For `atrium doctor`: what is missing here for desktops, and how it comes. */
export function describeDesktopPrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  const missing = missingDesktopPackages(context);
  if (missing.length === 0) return { missing: false, detail: 'TigerVNC, openbox, xterm' };
  if (canInstall(context)) return { missing: false, detail: `${missing.join(', ')} missing; "npm start" installs it` };
  return { missing: true, detail: `missing; install it (Debian and Ubuntu: apt-get install ${missing.join(' ')})` };
}
