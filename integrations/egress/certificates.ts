import { createPrivateKey, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';

/** A certificate authority: the key in PKCS #8, both as PEM. */
export interface Authority {
  certificate: string;
  key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const dayMs = 86_400_000;
const authorityDays = 3_650;
/** Certificates are renewed at half of this time. They begin a day early: clocks of computers may be a day behind. */
const hostDays = 14;
const cachedHosts = 500;

/**
 * Makes the authority of one installation. It may not make other authorities. Its name tells installations apart in a
 * list of authorities.
 */
export async function createAuthority(now: Date): Promise<Authority & { notAfter: Date }> {
  const x509 = await library();
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const notAfter = new Date(now.getTime() + authorityDays * dayMs);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=Atrium computers ${randomBytes(4).toString('hex')},O=Atrium`,
    notBefore: new Date(now.getTime() - dayMs),
    notAfter,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey), notAfter };
}

/** Certificates of hosts by one authority, made on first use. They share one key, which stays in memory. */
export class HostCertificates {
  readonly #authority: Authority;
  readonly #contexts = new Map<string, { context: Promise<SecureContext>; until: number }>();
  #keys: Promise<webcrypto.CryptoKeyPair> | undefined;

  constructor(authority: Authority) {
    this.#authority = authority;
  }

  contextFor(host: string, now = Date.now()): Promise<SecureContext> {
    const known = this.#contexts.get(host);
    if (known !== undefined && known.until > now) return known.context;
    const context = this.#make(host, now);
    context.catch(() => this.#contexts.delete(host));
    this.#contexts.delete(host);
    this.#contexts.set(host, { context, until: now + (hostDays / 2) * dayMs });
    const [oldest] = this.#contexts.keys();
    if (oldest !== undefined && this.#contexts.size > cachedHosts) this.#contexts.delete(oldest);
    return context;
  }

  async #make(host: string, now: number): Promise<SecureContext> {
    const x509 = await library();
    this.#keys ??= webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const keys = await this.#keys;
    const issuer = new x509.X509Certificate(this.#authority.certificate);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      // A common name has at most 64 characters, and nothing reads it.
      subject: 'O=Atrium',
      issuer: issuer.subject,
      notBefore: new Date(now - dayMs),
      notAfter: new Date(now + hostDays * dayMs),
      publicKey: keys.publicKey,
      signingKey: await importKey(createPrivateKey(this.#authority.key)),
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ],
    });
    return createSecureContext({
      key: await pemOf(keys.privateKey),
      cert: `${certificate.toString('pem')}\n${this.#authority.certificate}`,
      minVersion: 'TLSv1.2',
    });
  }
}

/** Loaded on first use: loading takes a while, and many installations never need it. */
async function library() {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}

function importKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', key.export({ type: 'pkcs8', format: 'der' }), algorithm, false, ['sign']);
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, type: 'pkcs8', format: 'der' }).export({
    type: 'pkcs8',
    format: 'pem',
  }) as string;
}

/** Positive, and 16 bytes long: RFC 5280 §4.1.2.2 allows 20 at most. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}
