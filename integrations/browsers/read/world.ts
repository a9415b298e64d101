import type { Frame } from './frames.ts';

/** A place for our own functions in a document, which its page can neither see nor change. Throws `CommandRefused`. */
export async function worldOf({ id, root }: Frame): Promise<number> {
  return (await root.send('Page.createIsolatedWorld', { frameId: id })).executionContextId;
}

/** What an expression gives there. */
export async function evaluateIn(frame: Frame, expression: string): Promise<unknown> {
  const contextId = await worldOf(frame);
  return (await frame.root.send('Runtime.evaluate', { expression, contextId, returnByValue: true })).result.value;
}
