import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { createComputerEgress } from '../../bin/computers/egress.ts';
import { createServices, type Services } from '../../bin/support/services.ts';
import { createAuthority, HostCertificates } from '../../integrations/egress/certificates.ts';
import { computerEnvironment } from '../../integrations/egress/computerEnvironment.ts';
import { writeTrustFiles } from '../../integrations/egress/trustFiles.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { defaultComputer } from '../../models/computers/defaultComputer.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { buildHost, hostDir, runOn } from '../builders/host.ts';
import { buildSpace, buildUser } from '../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

const trusted = getCACertificates('default');
let environment: TestEnvironment;
let services: Services;
let site: Server;
let port: number;
const heard: (string | undefined)[] = [];

/** The operator allows agents to reach `localhost` here, and the site has a certificate for that name. */
beforeAll(async () => {
  const authority = await createAuthority(new Date());
  setDefaultCACertificates([...trusted, authority.certificate]);
  const certificates = new HostCertificates(authority);
  site = createServer(
    { SNICallback: (name, done) => void certificates.contextFor(name).then((context) => done(null, context), done) },
    (req, res) => {
      heard.push(req.headers.authorization);
      res.end('hello');
    },
  );
  await once(site.listen(0, '127.0.0.1'), 'listening');
  port = (site.address() as AddressInfo).port;
  environment = await createTestEnvironment({ ATRIUM_EGRESS_ALLOW_INTERNAL: `localhost:${port}` });
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  services = await createServices({ config, logger, readers: false, remoteWriters: false, database });
});
afterAll(async () => {
  setDefaultCACertificates(trusted);
  site.close();
  await services.close();
  await environment.close();
});

test("a computer sends a secret only to its host, by the space's allow list, and the space's log has the request", async () => {
  const { identity, database, computers, computerSecrets, secrets, egressRules, egressAuthorities } = services;
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const actor = { userId: user.id, credentialId: null, address: null };
  const { id: computerId } = await defaultComputer(database, space.id);
  await secrets.named.put(space.id, 'TOKEN', 'the value of TOKEN', actor);
  const asked = { name: 'TOKEN', variable: 'API_KEY', hosts: [`localhost:${port}`], inUrl: false, headers: [] };
  await computerSecrets.put({ spaceId: space.id, computerId }, asked, actor);

  const dir = hostDir();
  await using egress = createComputerEgress(services);
  const trust = await writeTrustFiles(path.join(dir, '.trust'), await egressAuthorities.trusted());
  await using built = await buildHost({ dir, egress, readOnly: () => trust.readOnly });
  const order = await computers.orderOf({ ...(await getComputer(database, space.id, computerId)), generation: 1 });
  await built.host.start({ ...order, env: { ...computerEnvironment(trust.paths), ...order.env } });
  const client = built.host.client(computerId);
  const curl = `curl -sS --max-time 20 --noproxy '' -H "Authorization: Bearer $API_KEY" https://localhost:${port}/`;

  expect(await runOn(client, curl)).toMatchObject({ stdout: 'hello', stderr: '' });
  expect(heard).toEqual(['Bearer the value of TOKEN']);
  const log = await egressRules.list(space.id, { limit: 10 });
  const entry = { purpose: 'computer', host: 'localhost', port, address: '127.0.0.1', refusal: null };
  expect(log.data).toMatchObject([
    { ...entry, secret: 'TOKEN' },
    { ...entry, secret: null },
  ]);

  // A new value and a removal take effect without a restart.
  await secrets.named.put(space.id, 'TOKEN', 'another value', actor);
  await runOn(client, curl);
  await computerSecrets.remove({ spaceId: space.id, computerId }, 'TOKEN', actor);
  expect((await runOn(client, curl)).stderr).toContain('certificate');
  await egressRules.put(space.id, { allow: ['elsewhere.example'], deny: [] }, actor);
  expect((await runOn(client, curl)).stderr).toContain('403');
  expect(heard).toEqual(['Bearer the value of TOKEN', 'Bearer another value']);
});
