import type { StackContext } from './context.ts';
import { describePackages, installOptional, missingPackages } from './install.ts';

/** What browsers on computers need, by program: computers see the programs of this machine. */
const packages = { chromium: 'chromium' } as const;
/** What has no program: letters to read, of many scripts. */
const further = ['fonts-dejavu-core', 'fonts-liberation', 'fonts-noto-color-emoji'];

/** The packages that are not here. What has no program comes with the first that has one. */
export function missingBrowserPackages(context: Pick<StackContext, 'environment'>): string[] {
  const missing = missingPackages(packages, context);
  return missing.length === 0 ? [] : [...missing, ...further];
}

/** Installs what browsers need, where root may do so. Without it everything else works: what fails here is reported. */
export async function prepareBrowsers(context: StackContext): Promise<void> {
  if (process.platform !== 'linux') return;
  await installOptional(context, missingBrowserPackages(context), {
    purpose: 'browsers for computers',
    without: 'Computers have no browsers.',
  });
}

/** For `atrium doctor`: what is missing here for browsers, and how it comes. */
export function describeBrowserPrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  return describePackages(context, missingBrowserPackages(context), 'Chromium');
}
