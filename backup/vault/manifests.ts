import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { BackupError, DamageError } from '../errors.ts';
import type { Vault } from './vault.ts';

const folder = 'backups/';
const format = 1;

const stored = z.object({ bytes: z.number(), pieces: z.array(z.string()) });

const manifestSchema = z.object({
  format: z.literal(format),
  /** The moment of the database's state. */
  at: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  /** Identifies the installation, also after a restore. */
  installation: z.string(),
  /** The schema of the database. A version that lacks one of these migrations cannot use the backup. */
  migrations: z.array(z.string()),
  server: z.string(),
  database: stored,
  /** Lines of {@link ObjectEntry}, sorted by key. */
  objects: stored,
  objectCount: z.number(),
  objectBytes: z.number(),
  tenants: z.array(z.object({ databaseId: z.string(), content: stored })),
  /** Homes of the computers hosted on the machine that made the backup. */
  homes: z
    .object({
      hostId: z.string(),
      computers: z.array(
        z.object({
          computerId: z.string(),
          spaceId: z.string(),
          limits: z.record(z.string(), z.number()),
          content: stored,
        }),
      ),
    })
    .nullable(),
  /**
   * The data directory's files with master keys, by name. Keys of the environment are listed as if they were files too.
   */
  keys: z.record(z.string(), z.string()),
  kmsKeyId: z.string().nullable(),
  /** What the backup should have but lacks, in words. */
  gaps: z.array(z.string()),
  /** Objects that rows name but the bucket did not have. Only the first are listed, with their rows. */
  missing: z
    .object({
      count: z.number(),
      named: z.array(z.object({ key: z.string(), spaceId: z.string(), owner: z.string() })),
    })
    .default({ count: 0, named: [] }),
  newBytes: z.number(),
});

/** A backup exists once its manifest is written, which comes last. */
export type Manifest = z.infer<typeof manifestSchema>;

export interface ObjectEntry {
  key: string;
  bytes: number;
  pieces: string[];
}

export interface NamedManifest extends Manifest {
  id: string;
}

/** Ids sort by the time of the backup. */
export async function writeManifest(vault: Vault, manifest: Omit<Manifest, 'format'>): Promise<NamedManifest> {
  const id = `${manifest.at.replace(/[-:]|\.\d+/g, '')}-${randomBytes(3).toString('hex')}`;
  await vault.writeSealed(folder + id, { format, ...manifest });
  return { format, ...manifest, id };
}

/** Form of a backup's id. Other names in the folder are not ours. */
const idForm = /^\d{8}T\d{6}Z-[0-9a-f]{6}$/;

/** Oldest first. */
export async function listBackups(vault: Vault): Promise<string[]> {
  const ids: string[] = [];
  for await (const name of vault.place.list(folder)) {
    const id = name.slice(folder.length);
    if (idForm.test(id)) ids.push(id);
  }
  return ids.sort();
}

/** Without an id, reads the newest. Throws {@link BackupError}. */
export async function readManifest(vault: Vault, id?: string): Promise<NamedManifest> {
  if (id === undefined) return readNewest(vault);
  const found = await vault.readSealed(folder + id);
  if (found === undefined) throw new BackupError(`There is no backup ${id} in ${vault.place.title}.`);
  const manifest = manifestSchema.safeParse(found);
  if (manifest.success) return { ...manifest.data, id };
  throw new BackupError(`The backup ${id} was made by another version of Atrium, which this one cannot read.`);
}

async function readNewest(vault: Vault): Promise<NamedManifest> {
  const [newest, ...older] = (await listBackups(vault)).reverse();
  if (newest === undefined) throw new BackupError(`There is no finished backup in ${vault.place.title}.`);
  try {
    return await readManifest(vault, newest);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    const next = older[0] === undefined ? 'There is no other.' : `The next one is ${older[0]}: name it to use it.`;
    throw new DamageError(`The newest backup is damaged: ${error.message} ${next}`);
  }
}

export async function removeManifest(vault: Vault, id: string): Promise<void> {
  await vault.place.remove([folder + id]);
}
