import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { buildChatUser } from '../../builders/chat.ts';
import { buildHostedGit } from '../../builders/hostedRepository.ts';
import { gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';

let product: TestGit;
beforeAll(async () => {
  product = await buildHostedGit();
});
afterAll(() => product.close());

test('A checkout reports that the bundle is damaged in the store', async () => {
  const git = gitOf(await buildChatUser(product));
  const { id } = (await git.clone({ url: remoteRepository(product.server).url })).body;
  expect(await git.cloned(id)).toMatchObject({ status: 'ready' });
  const { config, database } = product.environment;
  const [[bundle]] = (await database.pool.query(
    'SELECT object_key AS objectKey, bytes FROM git_bundles WHERE item_id = ?',
    [id],
  )) as unknown as [[{ objectKey: string; bytes: number }]];
  const zeros = { Bucket: product.bucket.name, Key: bundle.objectKey, Body: new Uint8Array(Number(bundle.bytes)) };
  await product.bucket.client.send(new PutObjectCommand(zeros));
  // The copy on this machine is only a cache.
  rmSync(join(config.git.dir, id), { recursive: true, force: true });
  expect(await git.send('POST', `/git/${id}/checkout`, {})).toMatchObject({ status: 502, code: 'CONTENT_DAMAGED' });
});
