import { jest } from '@jest/globals';
import { middleware } from 'express-openapi-validator';
import { leaveOutUnusedSpecCheck } from '../../../api/frame/middleware/unusedSpecCheck.ts';

const responses = { 200: { description: 'x' } };
const document = { openapi: '3.1.0', info: { title: 'x', version: '1' }, paths: { '/a': { get: { responses } } } };

/** Why the validator does not load a document; undefined when it does. */
async function refusalOf(apiSpec: object, validateApiSpec: boolean): Promise<unknown> {
  const [load] = middleware({ apiSpec: structuredClone(apiSpec) as never, validateApiSpec });
  return new Promise((resolve) => load?.({ app: { param: () => undefined } } as never, {} as never, resolve));
}

test('a document is held against the schema of OpenAPI where that is asked for, and only there', async () => {
  leaveOutUnusedSpecCheck();
  const error = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const wrong = { ...document, info: {} };
  expect(await refusalOf(document, true)).toBeUndefined();
  expect(await refusalOf(wrong, true)).toMatchObject({ message: expect.stringContaining('invalid') });
  expect(await refusalOf(wrong, false)).toBeUndefined();
  error.mockRestore();
});
