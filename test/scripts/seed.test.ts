import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { buildHostingProduct } from '../builders/computer.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { tenantServer } from '../support/runServer.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

test.each(usable.slice(0, 1))('`npm run seed` fills a space with its examples, on $name', async () => {
  const product = await buildHostingProduct(await tenantServer());
  try {
    const { token } = await product.user();
    const seed = spawn('npm', ['run', '-s', 'seed'], {
      env: { ...process.env, ATRIUM_URL: product.url, ATRIUM_TOKEN: token },
    });
    const [out, err, [exitCode]] = await Promise.all([text(seed.stdout), text(seed.stderr), once(seed, 'close')]);
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
    expect(out.match(/^made /gm)).toHaveLength(8);
  } finally {
    await product.close();
  }
});
