import type { StackContext } from './context.ts';
import { describePackages, installOptional, missingPackages } from './install.ts';

/** Programs that desktops on computers need, with their packages. Computers see the programs of this machine. */
const packages = {
  Xtigervnc: 'tigervnc-standalone-server',
  xkbcomp: 'x11-xkb-utils',
  openbox: 'openbox',
  xrandr: 'x11-xserver-utils',
  xterm: 'xterm',
  xclip: 'xclip',
  ffmpeg: 'ffmpeg',
} as const;
/** Packages without a program: keyboard layouts and fonts. */
const further = ['xkb-data', 'fonts-dejavu-core'];

/** The missing packages. Packages without a program are installed together with the first missing program. */
export function missingDesktopPackages(context: Pick<StackContext, 'environment'>): string[] {
  const missing = missingPackages(packages, context);
  return missing.length === 0 ? [] : [...missing, ...further];
}

/** Installs the packages for desktops, if root may do so. Desktops are optional, so a failure is only reported. */
export async function prepareDesktops(context: StackContext): Promise<void> {
  if (process.platform !== 'linux') return;
  await installOptional(context, missingDesktopPackages(context), {
    purpose: 'desktops for computers',
    without: 'Computers have no desktops.',
  });
}

/** For `atrium doctor`: what desktops lack here, and how to get it. */
export function describeDesktopPrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  return describePackages(context, missingDesktopPackages(context), 'TigerVNC, openbox, xterm, ffmpeg');
}
