import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Secrets of spaces, and values that people typed into forms. */
const initial = initialTables('secrets', [
  `CREATE TABLE IF NOT EXISTS secrets (
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(128) NOT NULL,
    sealed MEDIUMBLOB NOT NULL, -- bound to the space and the name
    size INT UNSIGNED NOT NULL, -- bytes of the value in clear, for the limit of the space
    revision INT UNSIGNED NOT NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    updated_by VARCHAR(40) NOT NULL,
    PRIMARY KEY (space_id, name)
  )`,
  // Values that people type into forms. They expire.
  `CREATE TABLE IF NOT EXISTS dynamic_secrets (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    name VARCHAR(200) NOT NULL,
    field VARCHAR(200) NOT NULL,
    sealed MEDIUMBLOB NOT NULL,
    size INT UNSIGNED NOT NULL, -- bytes of the value in clear, for the limit of the space
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    KEY dynamic_secrets_space (space_id, expires_at),
    KEY dynamic_secrets_expires (expires_at)
  )`,
]);

export const secretsSchema: AreaSchema = {
  initial,
  ofSpace: ['secrets', 'dynamic_secrets'],
};
