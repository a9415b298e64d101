import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands in for AWS KMS, which would need an account: the same HTTP, and real encryption bound to the context. */
export interface TestKms {
  url: string;
  calls: { action: string; keyId: string; context: Record<string, string> }[];
  /** If set, all answers are this error. */
  failWith: string | undefined;
  close(): Promise<void>;
}

interface KmsRequest {
  KeyId: string;
  Plaintext?: string;
  CiphertextBlob?: string;
  EncryptionContext?: Record<string, string>;
}

export async function startKms(): Promise<TestKms> {
  const keys = new Map<string, Buffer>();
  const kms: TestKms = { url: '', calls: [], failWith: undefined, close: () => Promise.resolve() };

  function answer(action: string, { KeyId, Plaintext, CiphertextBlob, EncryptionContext = {} }: KmsRequest): object {
    kms.calls.push({ action, keyId: KeyId, context: EncryptionContext });
    const key = keys.get(KeyId) ?? randomBytes(32);
    keys.set(KeyId, key);
    const bound = Buffer.from(JSON.stringify(EncryptionContext));
    if (action === 'Encrypt') {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(bound);
      const sealed = [nonce, cipher.update(Plaintext ?? '', 'base64'), cipher.final(), cipher.getAuthTag()];
      return { KeyId, CiphertextBlob: Buffer.concat(sealed).toString('base64') };
    }
    const sealed = Buffer.from(CiphertextBlob ?? '', 'base64');
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(bound);
    decipher.setAuthTag(sealed.subarray(-16));
    const plaintext = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
    return { KeyId, Plaintext: plaintext.toString('base64') };
  }

  const server = createServer(async (req, res) => {
    const send = (status: number, body: object) =>
      res.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body));
    const target = req.headers['x-amz-target'];
    if (target === undefined) return send(404, {});
    const body = JSON.parse(await bodyOf(req)) as KmsRequest;
    if (kms.failWith !== undefined) return send(400, { __type: kms.failWith, message: 'No.' });
    try {
      send(200, answer(String(target).split('.')[1] ?? '', body));
    } catch {
      send(400, { __type: 'InvalidCiphertextException' });
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  kms.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  kms.close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => {
      server.close(() => resolve());
    });
  };
  return kms;
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req) text += chunk;
  return text;
}
