import { createDecipheriv, createECDH, createHmac, createPublicKey, hkdfSync, randomBytes, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A push as the browser gets it, decrypted with the device's keys. */
export interface ReceivedPush {
  device: string;
  headers: Record<string, string | string[] | undefined>;
  /** The sender's VAPID claims. The signature was verified. */
  vapid: { aud: string; sub: string; exp: number; publicKey: string };
  payload: Record<string, unknown>;
}

export interface FakeDevice {
  name: string;
  /** The result of `PushSubscription.toJSON()`. */
  subscription: { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } };
}

/**
 * A push service on a loopback port, with browsers. It verifies the sender (RFC 8292) and decrypts pushes (RFC 8291) by
 * the standards, without the library that Atrium uses.
 */
export async function startFakePushService() {
  const received: ReceivedPush[] = [];
  const requests: string[] = [];
  const statuses = new Map<string, { status: number; headers?: Record<string, string> }[]>();
  const devices = new Map<string, { decrypt(body: Buffer): Buffer }>();

  const server = createServer(async (request, response) => {
    const name = (request.url ?? '').slice(1);
    const body = await buffer(request);
    requests.push(name);
    const device = devices.get(name);
    const { status, headers } = statuses.get(name)?.shift() ?? { status: device === undefined ? 404 : 201 };
    if (status === 201 && device !== undefined) {
      const payload = JSON.parse(device.decrypt(body).toString('utf8')) as Record<string, unknown>;
      received.push({
        device: name,
        headers: request.headers,
        vapid: readVapid(request.headers.authorization),
        payload,
      });
    }
    response.writeHead(status, headers).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    received,
    /** The devices of all pushes, including refused ones. */
    requests,
    device(name: string): FakeDevice {
      const keys = createECDH('prime256v1');
      const publicKey = keys.generateKeys();
      const auth = randomBytes(16);
      devices.set(name, { decrypt: (body) => decrypt(body, keys, auth) });
      return {
        name,
        subscription: {
          endpoint: `${url}/${name}`,
          expirationTime: null,
          keys: { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') },
        },
      };
    },
    /** Sets the next answers to pushes for a device. */
    answer(name: string, ...answers: { status: number; headers?: Record<string, string> }[]) {
      statuses.set(name, answers);
    },
    of: (name: string) => received.filter(({ device }) => device === name),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export type FakePushService = Awaited<ReturnType<typeof startFakePushService>>;

/** Decrypts a record of aes128gcm (RFC 8188) with the keys that RFC 8291 §3.4 derives. */
function decrypt(body: Buffer, keys: ReturnType<typeof createECDH>, auth: Buffer): Buffer {
  const salt = body.subarray(0, 16);
  const idLength = body.readUInt8(20);
  const senderKey = body.subarray(21, 21 + idLength);
  const ciphertext = body.subarray(21 + idLength);
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), keys.getPublicKey(), senderKey]);
  const pseudoRandomKey = createHmac('sha256', auth).update(keys.computeSecret(senderKey)).digest();
  const inputKey = createHmac('sha256', pseudoRandomKey)
    .update(Buffer.concat([info, Buffer.from([1])]))
    .digest();
  const derive = (label: string, length: number) =>
    Buffer.from(hkdfSync('sha256', inputKey, salt, `Content-Encoding: ${label}\0`, length));
  const decipher = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12));
  decipher.setAuthTag(ciphertext.subarray(-16));
  const padded = Buffer.concat([decipher.update(ciphertext.subarray(0, -16)), decipher.final()]);
  return padded.subarray(0, padded.lastIndexOf(2));
}

function readVapid(authorization: string | undefined): ReceivedPush['vapid'] {
  const [, token = '', publicKey = ''] = /^vapid t=([^,]+), ?k=(.+)$/.exec(authorization ?? '') ?? [];
  const [header = '', claims = '', signature = ''] = token.split('.');
  const point = Buffer.from(publicKey, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((bytes) => bytes.toString('base64url'));
  const key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
  const isValid = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  if (!isValid) throw new Error('The signature of a push does not hold.');
  return { ...(JSON.parse(Buffer.from(claims, 'base64url').toString()) as ReceivedPush['vapid']), publicKey };
}
