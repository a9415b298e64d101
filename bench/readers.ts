import { DocumentReaders } from '../integrations/readers/documentReaders.ts';
import { readPage } from '../integrations/readers/kinds/page.ts';
import { readPdf } from '../integrations/readers/kinds/pdf.ts';
import { buildPdf } from '../test/builders/files.ts';
import { quantile, timed } from './support/times.ts';

/**
 * Compares reading a document in a process of its own with reading it in this one: `npx node bench/readers.ts`. Both
 * take turns in one run, so that other load on the machine affects both.
 */
const repeats = 40;
const sentence = 'A sentence of a paragraph that is as long as they are, with a comma, and an end. ';
const section = (n: number) => `<h2>Part ${n}</h2>${`<p>${sentence.repeat(4)}<a href="/x">more</a></p>`.repeat(6)}`;
const sections = Array.from({ length: 30 }, (_, n) => section(n)).join('');
const page = Buffer.from(
  `<!doctype html><html><head><title>T</title></head><body><main>${sections}</main></body></html>`,
);
const pdf = () => buildPdf(Array.from({ length: 20 }, (_, n) => `Page ${n}. ${sentence}`));

const readers = new DocumentReaders();
const request = { spaceId: 'spc_bench' };
const measures: Record<string, [inside: () => Promise<unknown>, outside: () => Promise<unknown>]> = {
  [`page of ${Math.round(page.length / 1_024)} KiB`]: [() => readPage(page), () => readers.read('page', page, request)],
  'PDF of 20 pages': [() => readPdf(new Uint8Array(pdf())), () => readers.read('pdf', pdf(), request)],
};

const out = (line: string) => process.stdout.write(`${line}\n`);

for (const [name, [inside, outside]] of Object.entries(measures)) {
  const first = await timed(outside);
  const times: [number[], number[]] = [[], []];
  for (let number = 0; number < repeats; number++) {
    times[0].push(await timed(inside));
    times[1].push(await timed(outside));
  }
  const [here, there] = times.map((all) => quantile(all, 0.5)) as [number, number];
  const ratio = (there / here).toFixed(2);
  out(
    `${name}: ${here.toFixed(1)} ms here, ${there.toFixed(1)} ms there (× ${ratio}); the first there ${Math.round(first)} ms`,
  );
}
readers.close();
