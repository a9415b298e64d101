import { DecryptCommand, EncryptCommand, InvalidCiphertextException, KMSClient } from '@aws-sdk/client-kms';
import { DecryptionError } from './errors.ts';
import type { MasterKey } from './masterKey.ts';

export interface KmsSettings {
  /** A key's id, ARN, or alias. */
  keyId: string;
  /** Undefined means the region of the AWS environment. */
  region?: string | undefined;
  /** Undefined means AWS itself. */
  endpoint?: string | undefined;
}

const maxAttempts = 4;
const requestTimeoutMs = 5_000;

/**
 * A master key that never leaves AWS KMS. Credentials come from where the AWS SDK looks for them (the machine's role,
 * `AWS_…`). The data key's scope and version are sent as the encryption context, which KMS authenticates and CloudTrail
 * shows.
 */
export function kmsMasterKey(settings: KmsSettings): MasterKey {
  const { keyId, region, endpoint } = settings;
  const client = new KMSClient({
    maxAttempts,
    requestHandler: { requestTimeout: requestTimeoutMs, connectionTimeout: requestTimeoutMs },
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
  });
  const contextOf = (dataKey: string) => ({ 'atrium:data-key': dataKey });
  return {
    id: `kms:${keyId}`,
    async wrap(dataKey, context) {
      const { CiphertextBlob: wrapped } = await client.send(
        new EncryptCommand({ KeyId: keyId, Plaintext: dataKey, EncryptionContext: contextOf(context) }),
      );
      if (wrapped === undefined) throw new Error('AWS KMS answered without a ciphertext.');
      return Buffer.from(wrapped);
    },
    async unwrap(wrapped, context) {
      try {
        const { Plaintext: dataKey } = await client.send(
          new DecryptCommand({ KeyId: keyId, CiphertextBlob: wrapped, EncryptionContext: contextOf(context) }),
        );
        if (dataKey === undefined) throw new Error('AWS KMS answered without a plaintext.');
        return Buffer.from(dataKey);
      } catch (error) {
        if (!(error instanceof InvalidCiphertextException)) throw error;
        throw new DecryptionError('AWS KMS does not open the wrapped key: another key, or another place.');
      }
    },
  };
}
