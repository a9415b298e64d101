import { newId } from '../../base/ids.ts';

/** A complete save of a home, for `insertRows`. */
export function saveRow({ spaceId, computerId }: { spaceId: string; computerId: string }) {
  const id = newId('homeSave');
  const now = new Date();
  return {
    id,
    space_id: spaceId,
    computer_id: computerId,
    base_id: id,
    host_id: 'hst_1',
    generation: 1,
    format: 'btrfs',
    taken_at: now,
    home_bytes: 1,
    pieces: 1,
    created_at: now,
  };
}
