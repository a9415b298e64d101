import { readDataUrl } from '../../models/chat/attachments.ts';

test.each([
  ['data:,plain', 'plain'],
  ['data:text/plain;charset=utf-8,gr%C3%BC%C3%9Fe', 'grüße'],
  ['data:text/plain,grüße', 'grüße'],
  ['DATA:text/plain;BASE64,aGVsbG8=', 'hello'],
  ['data:;base64,aGVs%0AbG8=', 'hello'],
  ['data:text/plain;base64,aGVs bG8', 'hello'],
  ['data:text/plain;base64,', ''],
  ['data:,before#fragment', 'before'],
  ['data:', undefined],
  ['data:;base64,!!!', undefined],
  ['data:;base64,AAAAA', undefined],
  ['https://example.com/a,b', undefined],
])('%s', (url, text) => {
  expect(readDataUrl(url)?.toString('utf8')).toBe(text);
});

test.each(['data:,a%20b%ff', 'data:application/octet-stream;base64,AP8A/w==', 'data:text/html,<b>x</b>'])(
  '%s is read as fetch reads it',
  async (url) => {
    expect(readDataUrl(url)).toEqual(Buffer.from(await (await fetch(url)).arrayBuffer()));
  },
);
