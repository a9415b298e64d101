import { firstOf } from '../../base/text.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** What a page says, as text that can be kept and shown: bounded, whole characters, without control characters. */
export function said(text: string, maxLength: number): string {
  return firstOf(firstOf(text, maxLength).toWellFormed().replace(controls, ' '), maxLength);
}

/** An address as a page has it. */
export function saidUrl(url: string): string {
  return said(url, 2_048);
}
