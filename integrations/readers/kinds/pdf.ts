import { getDocumentProxy } from 'unpdf';
import { firstOf } from '../../../base/text.ts';
import { maxTextCharacters } from './limits.ts';

export interface PdfText {
  /** The text of each page that was read, in order. */
  pages: string[];
  pageCount: number;
  /** There is more text than was read. */
  isCut: boolean;
}

/** The text of a PDF, page by page. Throws for one that is broken or encrypted. */
export async function readPdf(bytes: Uint8Array): Promise<PdfText> {
  const document = await getDocumentProxy(bytes, { useWasm: false, verbosity: 0 });
  try {
    const pages: string[] = [];
    let left = maxTextCharacters;
    for (let number = 1; number <= document.numPages && left > 0; number++) {
      const page = await document.getPage(number);
      const { items } = await page.getTextContent();
      const text = items
        .map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : ''))
        .join('')
        .trim();
      pages.push(firstOf(text, left).toWellFormed());
      left -= text.length;
      page.cleanup();
    }
    return { pages, pageCount: document.numPages, isCut: left < 0 || pages.length < document.numPages };
  } finally {
    await document.loadingTask.destroy();
  }
}
