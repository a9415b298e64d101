import { imageNameOf, pinnedImage } from '../../base/imageNames.ts';

const hex = 'a'.repeat(64);

test.each([
  ['registry.example.org/team/image:1.2', 'registry.example.org', 'team/image', '1.2', undefined],
  ['registry.example.org/image', 'registry.example.org', 'image', 'latest', undefined],
  ['localhost/image', 'localhost', 'image', 'latest', undefined],
  ['localhost:5000/a_b/c--d.e:T_1', 'localhost:5000', 'a_b/c--d.e', 'T_1', undefined],
  ['127.0.0.1:5000/image', '127.0.0.1:5000', 'image', 'latest', undefined],
  ['[::1]:5000/image', '[::1]:5000', 'image', 'latest', undefined],
  [`a.example/image@sha256:${hex}`, 'a.example', 'image', 'latest', `sha256:${hex}`],
  [`a.example/image:1@sha256:${hex}`, 'a.example', 'image', '1', `sha256:${hex}`],
])('%s is an image', (text, registry, repository, tag, digest) => {
  expect(imageNameOf(text)).toEqual({ registry, repository, tag, digest });
});

test.each([
  'debian',
  'node:22',
  'library/node',
  'env_1',
  '/image',
  'a.example/',
  'a.example/Image',
  'a.example/image:',
  'a.example/image: 1',
  'a.example/../image',
  'a.example//image',
  'a.example/-image',
  'A.example/image',
  'a.example:port/image',
  `a.example/image@sha256:${'A'.repeat(64)}`,
  'a.example/image@md5:1',
  `a.example/image@sha256:${hex}@sha256:${hex}`,
  'a.example/image\n',
  `a.example/${'a'.repeat(500)}`,
  'http://a.example/image',
])('%j is none', (text) => {
  expect(imageNameOf(text)).toBeUndefined();
});

test('an image by its digest', () => {
  const name = imageNameOf('a.example/team/image:1');
  expect(name && pinnedImage(name, `sha256:${hex}`)).toBe(`a.example/team/image@sha256:${hex}`);
});
