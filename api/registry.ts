import * as named from './areas.ts';
import { type Area, tableOf } from './frame/area.ts';
import type { Access, OperationId } from './frame/auth/access.ts';

const { apps, ...others } = named;

/**
 * Every area of the API, in the order in which Express tries their routes. Apps are the last: `/api/webhooks/:spaceId/:appId`
 * also matches literal paths of other areas.
 */
export const areas: readonly Area[] = [...Object.values(others), apps];

/**
 * The areas' access rows as one table. The compiler refuses an operation without a row, an operation with two rows, and a
 * row without an operation. test/api/frame/roles.test.ts calls each operation as each kind of caller and compares.
 */
export const accessTable = tableOf(named) satisfies Record<OperationId, Access>;
