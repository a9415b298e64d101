/** One element with 200,000 attributes: within every cap, and the parser compares each of them with all before it. */
export const slowPage = Buffer.from(
  `<div ${Array.from({ length: 200_000 }, (_, n) => `a${n}`).join(' ')}>never read</div>`,
);

/** What a page says at the bottom of so many nested elements. */
export function deepPage(depth: number): Buffer {
  return Buffer.from(`<html><title>Deep</title><body>${'<div>'.repeat(depth)}at the bottom`);
}
