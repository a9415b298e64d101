import type { Readable } from './limits.ts';
import type { PageText } from './page.ts';
import type { PdfText } from './pdf.ts';
import type { YamlText } from './yaml.ts';

/** The result of reading each kind of document. A new kind is a line here, a file in this folder, and its limits. */
export interface Readings {
  page: PageText;
  pdf: PdfText;
  yaml: YamlText;
}

/** Loaded with the first document of the kind: a process that reads pages does not load the PDF reader. */
export const readers: { [Kind in Readable]: () => Promise<(bytes: Uint8Array) => Promise<Readings[Kind]>> } = {
  page: async () => (await import('./page.ts')).readPage,
  pdf: async () => (await import('./pdf.ts')).readPdf,
  yaml: async () => (await import('./yaml.ts')).readYaml,
};
