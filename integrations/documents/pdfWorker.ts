import { parentPort } from 'node:worker_threads';
import { getDocumentProxy } from 'unpdf';
import type { PdfJob, PdfText } from './pdfText.ts';

/** Runs in a thread of its own: a hostile document can spin or fill memory here, and is ended from outside. */
parentPort?.once('message', async (job: PdfJob) => {
  const document = await getDocumentProxy(job.bytes);
  const pages: string[] = [];
  let characters = 0;
  for (let number = 1; number <= document.numPages && characters < job.maxCharacters; number++) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const text = items
      .map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : ''))
      .join('')
      .trim();
    pages.push(text);
    characters += text.length;
  }
  parentPort?.postMessage({ pages, pageCount: document.numPages } satisfies PdfText);
});
