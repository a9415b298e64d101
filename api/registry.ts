import * as named from './areas.ts';
import { type Area, tableOf } from './frame/area.ts';
import type { Access, OperationId } from './frame/auth/access.ts';

/** Every area of the API, in the order of their names. */
export const areas: readonly Area[] = Object.values(named);

/**
 * The areas' access rows as one table. The compiler refuses an operation without a row, an operation with two rows, and a
 * row without an operation. test/api/frame/roles.test.ts calls each operation as each kind of caller and compares.
 */
export const accessTable = tableOf(named) satisfies Record<OperationId, Access>;
