/**
 * An element with 300,000 attributes. It is within every limit, but the parser compares each attribute with all earlier
 * ones.
 */
export const slowPage = Buffer.from(
  `<div ${Array.from({ length: 300_000 }, (_, n) => `a${n.toString(36)}`).join(' ')}>never read</div>`,
);

/** A page with text inside this many nested elements. */
export function deepPage(depth: number): Buffer {
  return Buffer.from(`<html><title>Deep</title><body>${'<div>'.repeat(depth)}at the bottom`);
}
