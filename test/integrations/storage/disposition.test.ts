import { contentDisposition } from '../../../integrations/storage/disposition.ts';

/** Types that a browser, old or new, may run as a page, a script or a program. */
test.each([
  'text/html',
  'TEXT/HTML',
  'text/html;charset=utf-8',
  'application/xhtml+xml',
  'image/svg+xml',
  'text/xml',
  'application/xml',
  'application/rss+xml',
  'application/mathml+xml',
  'text/xsl',
  'text/css',
  'text/javascript',
  'application/javascript',
  'application/x-shockwave-flash',
  'application/java-archive',
  'application/x-mimearchive',
  'multipart/related',
  'multipart/x-mixed-replace',
  'message/rfc822',
  'text/vcard',
  'application/octet-stream',
  'image/svg+xml, image/png',
  '',
])('%s is only saved, never shown', (contentType) => {
  expect(contentDisposition({ name: 'a', contentType })).toMatch(/^attachment; /);
});

test.each(['image/png', 'video/mp4', 'text/plain', 'application/pdf'])(
  '%s may be shown, or saved on request',
  (contentType) => {
    expect(contentDisposition({ name: 'a', contentType })).toMatch(/^inline; /);
    expect(contentDisposition({ name: 'a', contentType }, true)).toMatch(/^attachment; /);
  },
);

test('a file name cannot add a header or end its own value', () => {
  const value = contentDisposition({ name: 'a";\r\nx: y; filename="é', contentType: 'text/html' });
  expect(value).not.toMatch(/[\r\n]/);
  expect(value.match(/"/g)).toHaveLength(2);
});
