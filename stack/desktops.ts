import type { StackContext } from './context.ts';
import { describePackages, installOptional, missingPackages } from './install.ts';

/** What desktops on computers need, by program: computers see the programs of this machine. */
const packages = {
  Xtigervnc: 'tigervnc-standalone-server',
  xkbcomp: 'x11-xkb-utils',
  openbox: 'openbox',
  xrandr: 'x11-xserver-utils',
  xterm: 'xterm',
  xclip: 'xclip',
  ffmpeg: 'ffmpeg',
} as const;
/** What has no program: keyboards, and letters to read. */
const further = ['xkb-data', 'fonts-dejavu-core'];

/** The packages that are not here. What has no program comes with the first that has one. */
export function missingDesktopPackages(context: Pick<StackContext, 'environment'>): string[] {
  const missing = missingPackages(packages, context);
  return missing.length === 0 ? [] : [...missing, ...further];
}

/** Installs what desktops need, where root may do so. Without it everything else works: what fails here is reported. */
export async function prepareDesktops(context: StackContext): Promise<void> {
  if (process.platform !== 'linux') return;
  await installOptional(context, missingDesktopPackages(context), {
    purpose: 'desktops for computers',
    without: 'Computers have no desktops.',
  });
}

/** For `atrium doctor`: what is missing here for desktops, and how it comes. */
export function describeDesktopPrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  return describePackages(context, missingDesktopPackages(context), 'TigerVNC, openbox, xterm, ffmpeg');
}
