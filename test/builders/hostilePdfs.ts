import { deflateSync } from 'node:zlib';

/**
 * A PDF with these objects, of which the first is its catalogue. A stream comes with the other entries of its
 * dictionary.
 */
export function pdfOf(objects: readonly (string | { entries: string; stream: Buffer })[]): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.5\n')];
  const offsets: number[] = [];
  let length = parts[0]?.length ?? 0;
  const add = (bytes: Buffer) => {
    parts.push(bytes);
    length += bytes.length;
  };
  objects.forEach((object, index) => {
    offsets.push(length);
    add(Buffer.from(`${index + 1} 0 obj\n`));
    if (typeof object === 'string') add(Buffer.from(object));
    else {
      add(Buffer.from(`<< ${object.entries} /Length ${object.stream.length} >>\nstream\n`));
      add(object.stream);
      add(Buffer.from('\nendstream'));
    }
    add(Buffer.from('\nendobj\n'));
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const start = length;
  const size = objects.length + 1;
  add(Buffer.from(`xref\n0 ${size}\n0000000000 65535 f \n${table}trailer << /Size ${size} /Root 1 0 R >>\n`));
  add(Buffer.from(`startxref\n${start}\n%%EOF`));
  return Buffer.concat(parts);
}

const catalog = '<< /Type /Catalog /Pages 2 0 R >>';
const pages = '<< /Type /Pages /Kids [3 0 R] /Count 1 >>';
const page = (resources = '') =>
  `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << ${resources} >> /Contents 4 0 R >>`;

/** A page whose content is this many megabytes of spaces, which deflate to a thousandth of that. */
export function streamBomb(megabytes: number): Buffer {
  return pdfOf([catalog, pages, page(), { entries: '/Filter /FlateDecode', stream: deflated(megabytes) }]);
}

/** Spaces deflated twice: some kilobytes that unpack to this many megabytes. */
export function nestedBomb(megabytes: number): Buffer {
  const filter = '/Filter [/FlateDecode /FlateDecode]';
  return pdfOf([catalog, pages, page(), { entries: filter, stream: deflateSync(deflated(megabytes)) }]);
}

/** A cross-reference stream and an object stream that unpack to this many megabytes. They are read before any page. */
export function objectStreamBomb(megabytes: number): Buffer {
  const objects = {
    entries: '/Type /ObjStm /N 1 /First 4 /Filter [/FlateDecode /FlateDecode]',
    stream: deflateSync(deflated(megabytes)),
  };
  const file = pdfOf([objects]);
  const body = file.subarray(0, file.indexOf('xref\n'));
  // Objects 0 to 2: none, the object stream itself, and the catalogue, which claims to be in that stream.
  const rows = Buffer.from([0, 0, 0, 0, 1, 0, 9, 0, 2, 0, 1, 0]);
  const entries = `/Type /XRef /Size 3 /W [1 2 1] /Root 2 0 R /Length ${rows.length}`;
  const table = Buffer.concat([
    Buffer.from(`3 0 obj\n<< ${entries} >>\nstream\n`),
    rows,
    Buffer.from('\nendstream\nendobj\n'),
  ]);
  return Buffer.concat([body, table, Buffer.from(`startxref\n${body.length}\n%%EOF`)]);
}

/** A page whose content claims to be a picture of 65,500 by 65,500 pixels. */
export function giantImage(): Buffer {
  const side = [0xff, 0xdc];
  const frame = [0xff, 0xc0, 0, 17, 8, ...side, ...side, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
  const scan = [0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0];
  const jpeg = Buffer.from([0xff, 0xd8, ...frame, ...scan, 0, 0, 0, 0xff, 0xd9]);
  return pdfOf([catalog, pages, page(), { entries: '/Filter /DCTDecode', stream: jpeg }]);
}

/** A page with a font whose program unpacks to this many megabytes. */
export function fontBomb(megabytes: number): Buffer {
  return pdfOf([
    catalog,
    pages,
    page('/Font << /F1 5 0 R >>'),
    { entries: '', stream: Buffer.from('BT /F1 12 Tf 72 720 Td (a text) Tj ET') },
    '<< /Type /Font /Subtype /TrueType /BaseFont /Bomb /FirstChar 97 /LastChar 97 /Widths [500] /FontDescriptor 6 0 R >>',
    '<< /Type /FontDescriptor /FontName /Bomb /Flags 32 /FontFile2 7 0 R /ItalicAngle 0 /Ascent 1 /Descent 0 /CapHeight 1 /StemV 1 >>',
    { entries: '/Filter [/FlateDecode /FlateDecode]', stream: deflateSync(deflated(megabytes)) },
  ]);
}

/** A form that draws itself twice, this many levels deep. The text is drawn 2 to that power times. */
export function formBomb(levels: number): Buffer {
  const form = (next: number) => ({
    entries: `/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X ${next} 0 R >> >>`,
    stream: Buffer.from('/X Do /X Do'),
  });
  const forms = Array.from({ length: levels }, (_, level) => form(level + 6));
  const text = { entries: '/Type /XObject /Subtype /Form /BBox [0 0 9 9]', stream: Buffer.from('q Q '.repeat(1_000)) };
  return pdfOf([
    catalog,
    pages,
    page('/XObject << /X 5 0 R >>'),
    { entries: '', stream: Buffer.from('/X Do') },
    ...forms,
    text,
  ]);
}

/** Deflates spaces in chunks, so that the tests do not hold the unpacked bytes in memory. */
function deflated(megabytes: number): Buffer {
  const known = made.get(megabytes);
  if (known !== undefined) return known;
  // Copies of one block, each ended by a full flush, form one deflate stream. PDF readers ignore the checksum.
  const block = deflateSync(Buffer.alloc(1_000_000, ' '), { finishFlush: 3 });
  const body = block.subarray(2);
  const bytes = Buffer.concat([block.subarray(0, 2), ...Array.from({ length: megabytes }, () => body)]);
  made.set(megabytes, bytes);
  return bytes;
}
const made = new Map<number, Buffer>();
