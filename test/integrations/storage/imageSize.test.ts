import fc from 'fast-check';
import { imageSize } from '../../../integrations/storage/imageSize.ts';
import { onePixelPng, pngOf } from '../../builders/files.ts';

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))));
const exif = [0xff, 0xe1, 0, 6, 1, 2, 3, 4];
const frame = (marker: number) => [0xff, marker, 0, 17, 8, 0x01, 0x02, 0x03, 0x04, 3];

test.each([
  ['PNG', onePixelPng, 1, 1],
  ['a PNG that says it is huge', pngOf(60_000, 50_000), 60_000, 50_000],
  ['GIF', bytes('GIF89a', [0x40, 0x01, 0xf0, 0x00]), 320, 240],
  ['JPEG', bytes([0xff, 0xd8], exif, [0xff], frame(0xc0)), 0x0304, 0x0102],
  ['progressive JPEG behind a Huffman table', bytes([0xff, 0xd8, 0xff, 0xc4, 0, 3, 0], frame(0xc2)), 0x0304, 0x0102],
  ['lossy WebP', bytes('RIFF    WEBPVP8 ', Array(10).fill(0), [0x40, 0x01, 0xf0, 0x40]), 320, 240],
  ['lossless WebP', bytes('RIFF    WEBPVP8L', [0, 0, 0, 0, 0x2f, 0x3f, 0xc1, 0x3b, 0x00]), 320, 240],
  ['extended WebP', bytes('RIFF    WEBPVP8X', Array(8).fill(0), [0x3f, 0x01, 0, 0xef, 0, 0]), 320, 240],
])('the size of %s is read', (_name, file, width, height) => {
  expect(imageSize(file)).toEqual({ width, height });
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['a PNG that ends early', onePixelPng.subarray(0, 20)],
  ['a JPEG without a frame', bytes([0xff, 0xd8], exif)],
  ['a JPEG whose segment is no longer than nothing', bytes([0xff, 0xd8, 0xff, 0xe1, 0, 0, 0xff, 0xe1, 0, 0])],
  ['a picture without height', pngOf(5, 0)],
  ['a text', Buffer.from('GIF is a format, and so is RIFF.')],
])('%s has no size', (_name, file) => {
  expect(imageSize(file)).toBeUndefined();
});

test('random bytes give a valid size or none', () => {
  const starts = [
    [0xff, 0xd8],
    [0x89, 0x50, 0x4e, 0x47],
    [...Buffer.from('GIF8')],
    [...Buffer.from('RIFF    WEBPVP8')],
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...starts),
      fc.array(fc.constantFrom(0, 1, 2, 0xc0, 0xd8, 0xe1, 0xff)),
      (start, rest) => {
        const size = imageSize(Buffer.from([...start, ...rest]));
        expect(size === undefined || (size.width > 0 && size.height > 0)).toBe(true);
      },
    ),
  );
});
