import { parentPort } from 'node:worker_threads';
import type { ScreenAnswer, ScreenRequest } from './screenThread.ts';
import { TerminalScreen } from './terminalScreen.ts';

/**
 * The thread that draws terminals. It is separate (`screenThread.ts`), because a program may keep it busy or fill its
 * memory.
 */
const screens = new Map<number, TerminalScreen>();

parentPort?.on('message', (request: ScreenRequest) => {
  answer(request).then(
    (said) => parentPort?.postMessage(said),
    (error: unknown) => parentPort?.postMessage({ failed: String(error) } satisfies ScreenAnswer),
  );
});

async function answer(request: ScreenRequest): Promise<ScreenAnswer> {
  const { screenId } = request;
  if (request.do === 'open') {
    const { from } = request;
    screens.set(screenId, 'data' in from ? await TerminalScreen.restore(from) : new TerminalScreen(from));
  }
  const screen = screens.get(screenId);
  if (screen === undefined) throw new Error('There is no such screen.');
  if (request.do === 'take') for (const record of request.records) await screen.take(record);
  if (request.do === 'skipTo') await screen.skipTo(request.position, request.size);
  if (request.do === 'dispose') {
    screens.delete(screenId);
    screen.dispose();
  }
  const { readTo, cells } = screen;
  return { readTo, cells, ...(request.do === 'show' && { screen: screen.screen() }) };
}
