import { readFileSync } from 'node:fs';

/** The commands on a page, a block each. */
export function blocksOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^```(?:sh|bash)\n(.*?)^```/gms)].map(([, block = '']) => block);
}

/** What the examples of all pages begin with, as the README has it, but for the address and the token. */
export function beginningOf({ url, token }: { url: string; token: string }): string {
  const block = blocksOf('README.md').find((each) => each.includes('export SPACE='));
  if (block === undefined) throw new Error('The README does not say what the examples begin with.');
  return block.replace(/^export URL=.*$/m, `export URL=${url}`).replace(/^export TOKEN=.*$/m, `export TOKEN=${token}`);
}
