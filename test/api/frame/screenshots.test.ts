import { Screenshots } from '../../../api/frame/screenshots.ts';
import { waitFor } from '../../support/waitFor.ts';

/** A desktop whose screenshots are done when the test says so. */
function buildServer() {
  const begun: PromiseWithResolvers<Buffer>[] = [];
  const screenshot = () => {
    const made = Promise.withResolvers<Buffer>();
    begun.push(made);
    return made.promise;
  };
  return { begun, screenshot };
}

const session = (id: string, spaceId: string) => ({ id, spaceId, width: 10, height: 10 });
const picture = (text: string) => Buffer.from(text);
const busy = { kind: 'unavailable', code: 'SCREENSHOTS_BUSY', retryAfterSeconds: 1 };

test('Requests during a screenshot share the next one', async () => {
  const server = buildServer();
  const screenshots = new Screenshots({ mostPixels: 100, mostOfSpace: 100 });
  const shown = session('one', 'a');
  const first = screenshots.of(shown, server);
  const later = [screenshots.of(shown, server), screenshots.of(shown, server)];
  expect(server.begun).toHaveLength(1);
  server.begun[0]?.resolve(picture('first'));
  expect(await first).toEqual(picture('first'));
  await waitFor('the next screenshot', () => server.begun.length === 2);
  server.begun[1]?.resolve(picture('second'));
  expect(await Promise.all(later)).toEqual([picture('second'), picture('second')]);
  expect(server.begun).toHaveLength(2);
});

test('A process makes a limited number of screenshots at once, and fewer of one space', async () => {
  const server = buildServer();
  const screenshots = new Screenshots({ mostPixels: 300, mostOfSpace: 200 });
  const [first, second] = [screenshots.of(session('1', 'a'), server), screenshots.of(session('2', 'a'), server)];
  await expect(screenshots.of(session('3', 'a'), server)).rejects.toMatchObject(busy);
  const third = screenshots.of(session('4', 'b'), server);
  await expect(screenshots.of(session('5', 'b'), server)).rejects.toMatchObject(busy);
  server.begun[0]?.resolve(picture('done'));
  server.begun[1]?.reject(new Error('cut'));
  await first;
  await expect(second).rejects.toThrow('cut');
  const again = screenshots.of(session('3', 'a'), server);
  expect(server.begun).toHaveLength(4);
  server.begun[2]?.resolve(picture('done'));
  server.begun[3]?.resolve(picture('done'));
  await Promise.all([third, again]);
});
