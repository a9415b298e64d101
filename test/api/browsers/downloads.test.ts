import { browsersOf, startSite, type TestBrowsers } from '../../builders/browser.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getBrowserPrograms } from '../../support/browserPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('browsers');

let product: TestProduct;

beforeAll(async () => {
  await getBrowserPrograms();
  product = await buildHostingProduct({ ATRIUM_DRIVE_QUOTA_MIB: '2', ATRIUM_BROWSER_DOWNLOADS: '3' });
}, 300_000);
afterAll(() => product?.close());

interface Item {
  id: string;
  name: string;
  size: number;
}

async function list({ user }: TestComputer): Promise<Item[]> {
  return (await user.get<{ data: Item[] }>(`/api/spaces/${user.spaceId}/drive/items?path=/Downloads`)).data;
}

const folderOf = (id: string) => `.local/share/atrium/browsers/${id}-downloads`;

async function download(browsers: TestBrowsers, id: string, url: string): Promise<void> {
  await browsers.expect(201, 'POST', `/sessions/${id}/tabs`, { url });
}

test('Each file that a page sends is put into the drive once while the session runs', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const site = await startSite(computer);
  const session = await browsers.temporary();
  await download(browsers, session.id, `${site}/file-1`);
  const arrived = (files: number) =>
    waitFor('the file', async () => {
      const { downloads } = await browsers.get(session);
      return downloads.files === files ? downloads : undefined;
    });
  expect(await arrived(1)).toMatchObject({ folder: '/Downloads', bytes: 70, code: null });
  const [item] = await list(computer);
  expect(item).toMatchObject({ name: 'report.txt', size: 70 });
  const path = `/api/spaces/${computer.user.spaceId}/drive/items/${item?.id}/content`;
  expect(await (await computer.user.fetch(path)).text()).toBe('/file-1'.repeat(10));
  expect((await computer.exec(`ls ${folderOf(session.id)}`)).stdout).toBe('');

  // Another file with the same name.
  await download(browsers, session.id, `${site}/file-2`);
  await arrived(2);
  expect((await list(computer)).map(({ name }) => name)).toEqual(['report (2).txt', 'report.txt']);
  await browsers.end(session);
  expect(await list(computer)).toHaveLength(2);
  expect((await browsers.get(session)).downloads).toMatchObject({ files: 2, code: null });
});

test('Files that arrive last are in the drive when the session has ended, up to the limit', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const session = await browsers.temporary();
  await computer.exec(
    `cd ${folderOf(session.id)} && touch a b c d e.crdownload && ln -s /etc/passwd link && mkdir sub`,
  );
  await browsers.end(session);
  expect((await list(computer)).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  expect((await browsers.get(session)).downloads).toMatchObject({ files: 3, code: 'TOO_MANY_DOWNLOADS' });
  expect((await computer.exec(`ls ${folderOf(session.id)}`)).stdout).toContain('d\n');
});

full.test('A full drive is reported in the session, and the file stays on the computer', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const session = await browsers.temporary();
  const folder = folderOf(session.id);
  await computer.exec(`head -c 3000000 /dev/zero > large && mv large ${folder}/ && echo small > ${folder}/small`);
  const code = await waitFor('the code', async () => (await browsers.get(session)).downloads.code ?? undefined);
  expect(code).toBe('QUOTA_EXCEEDED');
  await browsers.end(session);
  expect((await list(computer)).map(({ name }) => name)).toEqual(['small']);
  expect((await browsers.get(session)).downloads).toMatchObject({ files: 1, code: 'QUOTA_EXCEEDED' });
  expect((await computer.exec(`stat -c %s ${folder}/large`)).stdout).toBe('3000000\n');
});

test('A file behind 1000 unfinished downloads stays on the computer when the session ends', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const session = await browsers.temporary();
  const folder = folderOf(session.id);
  await computer.exec(`cd ${folder} && seq -f 'a%g.crdownload' 1000 | xargs touch && echo kept > z`);
  await browsers.end(session);
  expect((await browsers.get(session)).downloads).toMatchObject({ files: 0, code: 'TOO_MANY_DOWNLOADS' });
  expect((await computer.exec(`cat ${folder}/z`)).stdout).toBe('kept\n');
});
