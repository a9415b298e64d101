import { spawnSync } from 'node:child_process';
import { findProgram, type StackContext } from './context.ts';
import { describePackages, installOptional, missingPackages } from './install.ts';

/** Programs that browsers on computers need, with their packages. Computers see the programs of this machine. */
const packages = { chromium: 'chromium', 'fc-list': 'fontconfig' } as const;

/**
 * Fonts that pages need, with the fontconfig pattern that finds them: Western letters, fonts that sites name, emoji,
 * Asian letters.
 */
const fonts = {
  'DejaVu Sans': 'fonts-dejavu-core',
  'Liberation Sans': 'fonts-liberation',
  ':lang=und-zsye': 'fonts-noto-color-emoji',
  ':charset=d55c': 'fonts-wqy-zenhei',
} as const;

const fontsMs = 10_000;

type Context = Pick<StackContext, 'environment'>;

export function missingBrowserPackages(context: Context): string[] {
  return [...missingPackages(packages, context), ...missingFonts(context)];
}

/** The missing font packages. A machine may have Chromium without any fonts. */
function missingFonts({ environment }: Context): string[] {
  const program = findProgram('fc-list', environment);
  const isHere = (pattern: string) => {
    if (program === undefined) return false;
    const { stdout } = spawnSync(program, [pattern, 'family'], { env: environment, timeout: fontsMs });
    return stdout?.length > 0;
  };
  return Object.entries(fonts).flatMap(([pattern, name]) => (isHere(pattern) ? [] : [name]));
}

/** Installs the packages for browsers, if root may do so. Browsers are optional, so a failure is only reported. */
export async function prepareBrowsers(context: StackContext): Promise<void> {
  if (process.platform !== 'linux') return;
  const isHere = missingPackages(packages, context).length === 0;
  await installOptional(context, missingBrowserPackages(context), {
    purpose: 'browsers for computers',
    without: isHere ? 'Pages in browsers lack letters.' : 'Computers have no browsers.',
  });
}

/** For `atrium doctor`: what browsers lack here, and how to get it. */
export function describeBrowserPrograms(context: Context): { missing: boolean; detail: string } {
  const described = describePackages(context, missingBrowserPackages(context), 'Chromium, fonts with emoji');
  if (!described.missing || missingPackages(packages, context).length > 0) return described;
  return { missing: false, detail: `Chromium; without fonts for some letters, which are ${described.detail}` };
}
