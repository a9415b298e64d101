import { DocumentReaders } from '../../../integrations/readers/documentReaders.ts';
import { usageFromPs } from '../../../integrations/readers/watch.ts';
import { buildPdf } from '../../builders/files.ts';
import { deepPage } from '../../builders/hostilePages.ts';
import * as hostile from '../../builders/hostilePdfs.ts';
import { watchPeak } from '../../support/readerProcesses.ts';

/** The text of pages and PDFs, and the limits for hostile ones. */
const readers = new DocumentReaders();
afterAll(() => readers.close());

const spaceId = 'spc_a';
const page = (html: string | Buffer) => readers.read('page', Buffer.from(html), { spaceId });
const pdf = (bytes: Buffer) => readers.read('pdf', bytes, { spaceId });
const peakWhile = async (work: () => Promise<unknown>) => {
  const peak = watchPeak();
  await work();
  return peak.stop();
};

describe('a page', () => {
  const paragraphs = Array.from(
    { length: 40 },
    (_, n) => `<p>Paragraph ${n}, of a story, and long enough to be one.</p>`,
  );
  const article = `<article><h1>The story</h1>${paragraphs.join('')}<ul><li>one<li><b>two</b></ul><pre><code>a &lt; b</code></pre></article>`;

  test('gives its article as Markdown, without the menu', async () => {
    const menu = '<nav><a href="/">Home</a></nav><script>alert(1)</script>';
    const html = `<!doctype html><html><head><title>A story</title></head><body>${menu}<main>${article}</main></body></html>`;
    const text = [
      '## The story',
      ...paragraphs.map((paragraph) => paragraph.replace(/<\/?p>/g, '')),
      '-   one\n-   **two**',
      '```\na < b\n```',
    ].join('\n\n');
    expect(await page(html)).toEqual({ kind: 'read', value: { title: 'A story', text, isCut: false } });
  });

  test.each([
    '<title>T</title><p>text',
    '<!doctype html><html lang="en"><title>T</title><p>text',
    '<html><head><title>T</title></head><p>text',
    '<html><title>T</title><body class="a"><p>text</body></html>',
  ])('may leave out optional tags: %s', async (html) => {
    expect(await page(html)).toEqual({ kind: 'read', value: { title: 'T', text: 'text', isCut: false } });
  });

  test('may be a fragment, empty, or in another alphabet', async () => {
    expect(await page('<p>Grüße, <em>世界</em> 🌍</p>')).toMatchObject({
      value: { title: null, text: 'Grüße, _世界_ 🌍' },
    });
    expect(await page('')).toMatchObject({ kind: 'read', value: { text: '' } });
  });

  test.each([400, 2_000])('that is nested %i deep is read to the bottom', async (depth) => {
    expect(await page(deepPage(depth))).toEqual({
      kind: 'read',
      value: { title: 'Deep', text: 'at the bottom', isCut: false },
    });
  });

  test.each([
    ['400,000 open elements', '<div>'.repeat(400_000), ''],
    ['more elements than are read', '<p>word</p>'.repeat(30_000), 'word\n\nword'],
    ['more characters than are read', `<p>begin</p><!--${'-'.repeat(3_000_000)}`, 'begin'],
  ])('with %s is read from its beginning and marked as cut', async (_name, html, text) => {
    const reading = await page(html);
    expect(reading).toMatchObject({ kind: 'read', value: { isCut: true } });
    expect(reading.kind === 'read' && reading.value.text.startsWith(text)).toBe(true);
  });
});

describe('a PDF', () => {
  test('gives the text of each page', async () => {
    const pages = ['First page', 'Second page'];
    expect(await pdf(buildPdf(pages))).toEqual({ kind: 'read', value: { pages, pageCount: 2, isCut: false } });
  });

  test('from the builders of bombs below is valid if it is small', async () => {
    for (const bytes of [hostile.streamBomb(1), hostile.nestedBomb(1), hostile.fontBomb(1), hostile.formBomb(4)]) {
      expect(await pdf(bytes)).toMatchObject({ kind: 'read', value: { pageCount: 1 } });
    }
  });

  test('that is broken is told from a costly one', async () => {
    expect(await pdf(Buffer.from('%PDF-1.7 and nothing more'))).toEqual({ kind: 'broken' });
  });

  // The watchdog ends the process when it sees more than 512 MiB. Before that, the kernel limits it to about 730 MiB.
  test.each([
    ['a stream of 1 GB', () => hostile.streamBomb(1_000), true],
    ['a stream of 1 GB, deflated twice', () => hostile.nestedBomb(1_000), true],
    ['an object stream of 1 GB', () => hostile.objectStreamBomb(1_000), true],
    ['a font of 1 GB', () => hostile.fontBomb(1_000), true],
    ['a picture of 65,500 by 65,500 pixels', hostile.giantImage, false],
    ['a form that draws itself 2⁴⁰ times', () => hostile.formBomb(40), false],
  ])('with %s is read or aborted in bounded memory', async (_name, build, isEnded) => {
    const bytes = build();
    const own = process.memoryUsage.rss();
    let reading: unknown;
    const peakMiB = await peakWhile(async () => {
      reading = await pdf(bytes);
    });
    expect(peakMiB).toBeGreaterThan(30);
    expect(peakMiB).toBeLessThan(850);
    expect(process.memoryUsage.rss() - own).toBeLessThan(200 * 1_048_576);
    if (isEnded) expect(reading).toEqual({ kind: expect.stringMatching(/^(costly|broken)$/) });
    expect(await pdf(buildPdf(['after it']))).toMatchObject({ kind: 'read' });
  });
});

test('usageFromPs reads the output of ps on macOS and BSD', () => {
  expect(usageFromPs('  51200   1:02.50\n')).toEqual({ residentBytes: 52_428_800, processorMs: 62_500 });
  expect(usageFromPs('1024 2-03:00:01')).toEqual({ residentBytes: 1_048_576, processorMs: 183_601_000 });
});
