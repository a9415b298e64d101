import { requireReturnUrl, returnUrlOf } from '../../../api/frame/returnUrls.ts';
import type { Config } from '../../../config/index.ts';

// People are sent back only to origins on the list, however a URL is written.

const http = {
  publicUrl: 'https://atrium.example.com',
  corsOrigins: ['https://app.example.com', 'http://localhost:5173'],
  allowsLocalPages: false,
} as unknown as Config['http'];
const of = (url: string, local = false) => returnUrlOf(url, { http: { ...http, allowsLocalPages: local } });

test.each([
  ['https://app.example.com/chat/1?a=b#end', 'https://app.example.com/chat/1?a=b#end'],
  ['https://app.example.com', 'https://app.example.com/'],
  ['https://APP.example.com:443/a/../b', 'https://app.example.com/b'],
  ['https://atrium.example.com/docs', 'https://atrium.example.com/docs'],
  ['http://localhost:5173/', 'http://localhost:5173/'],
])('%s is allowed', (url, normalized) => {
  expect(of(url)).toBe(normalized);
});

test.each([
  '//evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  'https:\\\\evil.example',
  'https:/app.example.com',
  'https:app.example.com',
  'https://evil.example/',
  'https://app.example.com.evil.example/',
  'https://app.example.com@evil.example/',
  'https://app.example.com:secret@evil.example/',
  'https://evil@app.example.com/',
  'https://app.example.com\\@evil.example/',
  'https://evil.example\\.app.example.com/',
  'https://app.example.com:444/',
  'http://app.example.com/',
  'http://localhost:5174/',
  'javascript:alert(1)//https://app.example.com/',
  'data:text/html,https://app.example.com/',
  'blob:https://app.example.com/x',
  'ftp://app.example.com/',
  'view-source:https://app.example.com/',
  ' https://app.example.com/',
  'https://app.example.com/\n//evil.example',
  'https://app.example.com/\tx',
  'ht\ntps://app.example.com/',
  'https://app.example.com/\u202egnp',
  'https://app.example.com%2f.evil.example/',
  'https://app。example.com.evil.example/',
  '/relative',
  'app.example.com',
  '',
])('%j is refused', (url) => {
  expect(of(url)).toBeUndefined();
  expect(() => requireReturnUrl(url, { http }, '/returnUrl')).toThrow(
    expect.objectContaining({ code: 'RETURN_URL_NOT_ALLOWED' }),
  );
});

test('Pages of this machine are allowed in development, and a return URL is optional', () => {
  expect(of('http://127.0.0.1:9999/x', true)).toBe('http://127.0.0.1:9999/x');
  expect(of('http://127.0.0.1:9999@evil.example/', true)).toBeUndefined();
  expect(requireReturnUrl(undefined, { http }, '/returnUrl')).toBeUndefined();
});
