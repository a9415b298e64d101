import { prepareDataDir } from '../../stack/folders.ts';
import { markInUse } from '../../stack/uncleanStart.ts';
import { temporaryFolder } from '../support/folders.ts';

test('a use that was not ended is known to the next one, and to no later one', () => {
  const dataDir = temporaryFolder();
  prepareDataDir(dataDir);
  expect(markInUse(dataDir).wasUnclean).toBe(false);
  const second = markInUse(dataDir);
  expect(second.wasUnclean).toBe(true);
  second.end();
  const third = markInUse(dataDir);
  expect(third.wasUnclean).toBe(false);
  third.end();
  third.end();
});
