/** One element with 300,000 attributes: within every cap, and the parser compares each of them with all before it. */
export const slowPage = Buffer.from(
  `<div ${Array.from({ length: 300_000 }, (_, n) => `a${n.toString(36)}`).join(' ')}>never read</div>`,
);

/** A page with text at the bottom of this many nested elements. */
export function deepPage(depth: number): Buffer {
  return Buffer.from(`<html><title>Deep</title><body>${'<div>'.repeat(depth)}at the bottom`);
}
