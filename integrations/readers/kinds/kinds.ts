import type { Readable } from './limits.ts';
import type { PageText } from './page.ts';
import type { PdfText } from './pdf.ts';

/** What each kind of document is read into. A new kind is a line here, a file in this folder, and its limits. */
export interface Readings {
  page: PageText;
  pdf: PdfText;
}

/** Loaded when a first document of the kind comes: a process that reads pages holds nothing of what reads PDFs. */
export const readers: { [Kind in Readable]: () => Promise<(bytes: Uint8Array) => Promise<Readings[Kind]>> } = {
  page: async () => (await import('./page.ts')).readPage,
  pdf: async () => (await import('./pdf.ts')).readPdf,
};
