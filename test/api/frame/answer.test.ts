import type { Response } from 'express';
import { type AnswerOf, answer } from '../../../api/frame/answer.ts';
import type { makeOnce } from '../../../api/frame/idempotency.ts';

// The compiler checks this: an expected error that it no longer finds makes `npm run typecheck` fail on the line.

const sent: unknown[] = [];
const res = {
  status(code: number) {
    sent.push(code);
    return { json: (body: unknown) => sent.push(body) };
  },
} as unknown as Response;

test('An answer must be one that the contract describes for the operation', () => {
  answer<'createCode'>(res, 201, { code: 'ABC', expiresAt: '2026-01-01T00:00:00.000Z' });
  expect(sent).toEqual([201, { code: 'ABC', expiresAt: '2026-01-01T00:00:00.000Z' }]);
  // @ts-expect-error it is made, and answered by 201
  answer<'createCode'>(res, 200, { code: 'ABC', expiresAt: '2026-01-01T00:00:00.000Z' });
  // @ts-expect-error the contract has times as text
  answer<'createCode'>(res, 201, { code: 'ABC', expiresAt: new Date() });
  // @ts-expect-error a field is missing
  answer<'createCode'>(res, 201, { code: 'ABC' });
  // @ts-expect-error there is no such field
  answer<'createCode'>(res, 201, { code: 'ABC', expiresAt: '', isAdmin: true });
  // @ts-expect-error it has no body
  answer<'logout'>(res, 204, {});
  // @ts-expect-error the operation is not named
  answer(res, 200, { code: 'ABC' });
});

test('The work of makeOnce must return what the contract describes', () => {
  type Work<Made> = (id: string) => Promise<Made>;
  type Once = typeof makeOnce<'createCode'>;
  const made: Work<AnswerOf<'createCode'>> = async (id) => ({ code: id, expiresAt: '' });
  made satisfies Parameters<Once>[4];
  const incomplete: Work<{ code: string }> = async (id) => ({ code: id });
  // @ts-expect-error a field is missing
  incomplete satisfies Parameters<Once>[4];
  expect([made, incomplete]).toBeDefined();
});
