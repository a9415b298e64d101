import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Requests to other hosts. */
const initial = initialTables('egress', [
  // Hosts that the requests of a space may reach. An empty allow_list allows all that are not denied.
  `CREATE TABLE IF NOT EXISTS egress_policies (
    space_id VARCHAR(40) NOT NULL PRIMARY KEY,
    allow_list MEDIUMTEXT NOT NULL, -- JSON list
    deny_list MEDIUMTEXT NOT NULL, -- JSON list
    updated_by VARCHAR(40) NOT NULL,
    updated_at DATETIME(3) NOT NULL
  )`,
  // Requests to other hosts. Paths are not kept, since a URL may hold a secret.
  `CREATE TABLE IF NOT EXISTS egress_log (
    number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    purpose VARCHAR(40) NOT NULL,
    host VARCHAR(255) NOT NULL,
    port SMALLINT UNSIGNED NOT NULL,
    address VARCHAR(64) NULL,
    secret VARCHAR(128) NULL, -- name of the secret that was put into the request
    refusal VARCHAR(200) NULL, -- why it was refused; NULL if it was allowed
    at DATETIME(3) NOT NULL,
    KEY egress_log_space (space_id, number),
    KEY egress_log_at (at)
  )`,
  // Certificate authorities that computers trust, for requests that get secrets. The number makes sure that only one
  // process makes the next one.
  `CREATE TABLE IF NOT EXISTS egress_authorities (
    number INT UNSIGNED NOT NULL PRIMARY KEY,
    certificate TEXT NOT NULL,
    sealed BLOB NOT NULL, -- its private key
    created_at DATETIME(3) NOT NULL,
    signs_from DATETIME(3) NOT NULL, -- when it starts to sign
    not_after DATETIME(3) NOT NULL,
    withdrawn_at DATETIME(3) NULL
  )`,
]);

export const egressSchema: AreaSchema = {
  initial,
  ofSpace: ['egress_policies', 'egress_log'],
  kept: { egress_authorities: 'They are the installation’s.' },
};
