import { hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { associatedData, decrypt, encrypt, keyBytes } from '../../crypto/aead.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { BackupError } from '../errors.ts';
import type { Place } from '../places/place.ts';
import { deriveKey } from './recoveryKey.ts';

const name = 'atrium-backups.json';
const format = 1;
const saltBytes = 16;
const mostBytes = 65_536;

const headerSchema = z.object({
  format: z.number(),
  salt: z.base64(),
  /** The key of everything in this place, encrypted with the recovery key. */
  key: z.base64(),
});

/** Keys of a place of backups. */
export interface VaultKeys {
  seal: Buffer;
  /** Key for the names of pieces. */
  names: Buffer;
  /** Table that decides where streams are cut. */
  cuts: Buffer;
}

/** Opens a place that has backups. Throws {@link BackupError} if it has none or the key is wrong. */
export async function openHeader(place: Place, secret: string): Promise<VaultKeys> {
  const keys = await readHeader(place, secret);
  if (keys !== undefined) return keys;
  throw new BackupError(
    (await place.exists())
      ? `There are no backups in ${place.title}.`
      : `There is no folder ${place.title}. Name the right one, or mount the disk that has it.`,
  );
}

/** Like {@link openHeader}, but gives a key to an empty place. */
export async function openOrMakeHeader(place: Place, secret: string): Promise<VaultKeys> {
  const known = await readHeader(place, secret);
  if (known !== undefined) return known;
  for await (const other of place.list('')) {
    throw new BackupError(
      `${place.title} holds something else (${other}) and no backups: give a folder or a prefix that is empty.`,
    );
  }
  const [salt, key] = [randomBytes(saltBytes), randomBytes(keyBytes)];
  const wrapped = encrypt(await deriveKey(secret, salt), associated, key);
  const header = { format, salt: salt.toString('base64'), key: wrapped.toString('base64') };
  await place.write(name, Buffer.from(`${JSON.stringify(header)}\n`));
  return keysOf(key);
}

const associated = associatedData('atrium/backup-key/v1');

async function readHeader(place: Place, secret: string): Promise<VaultKeys | undefined> {
  const bytes = await place.read(name, mostBytes);
  if (bytes === undefined) return undefined;
  const header = parse(place, bytes);
  const key = await deriveKey(secret, Buffer.from(header.salt, 'base64'));
  try {
    return keysOf(decrypt(key, associated, Buffer.from(header.key, 'base64')));
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    throw new BackupError(`The recovery key does not open the backups in ${place.title}: they were made with another.`);
  }
}

function parse(place: Place, bytes: Buffer) {
  let header: z.infer<typeof headerSchema>;
  try {
    header = headerSchema.parse(JSON.parse(bytes.toString('utf8')));
  } catch {
    throw new BackupError(`${name} in ${place.title} is broken. Without it nothing there can be opened.`);
  }
  if (header.format === format) return header;
  throw new BackupError(`The backups in ${place.title} were made by a newer Atrium. Use that one.`);
}

function keysOf(key: Buffer): VaultKeys {
  const derived = (purpose: string, bytes: number) => Buffer.from(hkdfSync('sha256', key, '', purpose, bytes));
  return {
    seal: derived('atrium/backup/seal/v1', keyBytes),
    names: derived('atrium/backup/names/v1', keyBytes),
    cuts: derived('atrium/backup/cuts/v1', 1_024),
  };
}
