import { randomBytes, scrypt } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { keyBytes } from '../../crypto/aead.ts';
import { makeFolderDurably, syncFolder } from '../../disk/durable.ts';
import { BackupError } from '../errors.ts';

/** Shorter passphrases can be guessed in spite of scrypt. */
const leastCharacters = 20;
/** scrypt's cost: 128 MiB and about half a second for each guess. */
const cost = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1_048_576 };

const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);

/** Makes a file with a new key that only its owner can read. Never overwrites a file. */
export async function makeRecoveryKey(file: string): Promise<void> {
  const folder = dirname(resolve(file));
  await makeFolderDurably(folder);
  const text = `${randomBytes(keyBytes).toString('base64')}\n`;
  // Written directly under its name, since the file system of a memory stick may lack links.
  await writeFile(file, text, { mode: 0o600, flag: 'wx', flush: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    throw new BackupError(`${file} is there already. Use it, or name another file.`);
  });
  await syncFolder(folder);
}

/** Reads a key file: a key made here, or any passphrase of at least 20 characters. */
export async function readRecoveryKey(file: string): Promise<string> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(file, error);
  });
  if ((found.mode & 0o077) !== 0) {
    throw new BackupError(`The recovery key ${file} can be read by others. Make it yours alone: chmod 600 ${file}`);
  }
  const bytes = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw unreadable(file, error);
  });
  const text = bytes.trim();
  if (text.length >= leastCharacters) return text;
  throw new BackupError(
    `The recovery key ${file} is too short: a passphrase has at least ${leastCharacters} characters.`,
  );
}

function unreadable(file: string, { code, message }: NodeJS.ErrnoException): BackupError {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new BackupError(
        `There is no recovery key ${file}. Give the file by --key-file or ATRIUM_BACKUP_KEY_FILE. Only where there are no backups yet, make one: npm run -s atrium -- backup key ${file}`,
      );
    case 'EACCES':
    case 'EPERM':
      return new BackupError(
        `The recovery key ${file} may not be read by this user. Run this as the user whose file it is, or make the file theirs (chown).`,
      );
    case 'EISDIR':
      return new BackupError(`The recovery key ${file} is a folder. Give the file in it.`);
    default:
      return new BackupError(`The recovery key ${file} cannot be read: ${message}.`);
  }
}

/** Derives the key for one place of backups from the recovery key. */
export function deriveKey(secret: string, salt: Buffer): Promise<Buffer> {
  return derive(secret, salt, keyBytes, cost);
}
