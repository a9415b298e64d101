import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import type { Computer } from './computer.ts';

/** Computers that have, or should have, a running workflow. */
export const restlessComputers = waitingIn<Waiting & Pick<Computer, 'spaceId' | 'wish'>>({
  table: 'computers',
  columns: ['space_id AS spaceId', 'wish'],
  where: "(status IN ('starting', 'running', 'paused', 'stopping') OR wish IS NOT NULL)",
  time: 'status_at',
});
