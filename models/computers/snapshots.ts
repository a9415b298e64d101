import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { insert } from '../database/sql.ts';

/** A row of `computer_snapshots`: the name of a save, which is kept as long as it has one. */
export interface Snapshot {
  id: string;
  spaceId: string;
  computerId: string;
  name: string;
  saveId: string;
  /** Null if Atrium made it. */
  createdBy: string | null;
  createdAt: Date;
}

/** Names a save. The save is locked. */
export async function addSnapshot(
  tx: Transaction,
  { id = newId('computerSnapshot'), ...named }: Omit<Snapshot, 'id' | 'createdAt'> & { id?: string },
): Promise<void> {
  await insert(tx, 'computer_snapshots', { id, ...named, createdAt: new Date() });
}
